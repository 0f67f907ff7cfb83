// One of two integers. Nothing before ptxas can make a max or min of it: of two of those in a row, ptxas forgets to
// negate the second operand (from sm_90, seen with CUDA 13.0; github.com/pytorch/pytorch/issues/190973).
__device__ inline int select(bool first, int a, int b) {
  int selected;
  asm("{ .reg .pred p; setp.ne.s32 p, %1, 0; selp.b32 %0, %2, %3, p; }"
      : "=r"(selected)
      : "r"(static_cast<int>(first)), "r"(a), "r"(b));
  return selected;
}

// One of two 64-bit integers, which may be 32-bit ones to the compiler.
__device__ inline i64 select(bool first, i64 a, i64 b) {
  i64 selected;
  asm("{ .reg .pred p; setp.ne.s32 p, %1, 0; selp.b64 %0, %2, %3, p; }"
      : "=l"(selected)
      : "r"(static_cast<int>(first)), "l"(a), "l"(b));
  return selected;
}
