// Selects one of two integers. Written in PTX so that nothing before ptxas can turn it into a max or min: for two of
// those in a row, ptxas forgets to negate the second operand (from sm_90 on, seen with CUDA 13.0;
// github.com/pytorch/pytorch/issues/190973).
__device__ inline int select(bool first, int a, int b) {
  int selected;
  asm("{ .reg .pred p; setp.ne.s32 p, %1, 0; selp.b32 %0, %2, %3, p; }"
      : "=r"(selected)
      : "r"(static_cast<int>(first)), "r"(a), "r"(b));
  return selected;
}

// Selects one of two 64-bit integers, which the compiler may have narrowed to 32 bits.
__device__ inline i64 select(bool first, i64 a, i64 b) {
  i64 selected;
  asm("{ .reg .pred p; setp.ne.s32 p, %1, 0; selp.b64 %0, %2, %3, p; }"
      : "=l"(selected)
      : "r"(static_cast<int>(first)), "l"(a), "l"(b));
  return selected;
}
