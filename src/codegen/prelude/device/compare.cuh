// a < b; false for NaN. ptxas assumes that the known range of a value holds for NaN as well: it takes |x| >= 0 to be
// true (seen with CUDA 13.0, for every architecture). It preserves comparisons that are true for NaN, so this is the
// negation of one, in PTX because the compiler that runs before ptxas would invert it.
__device__ inline bool less(float a, float b) {
  u32 holds;
  asm("{ .reg .pred p; setp.geu.f32 p, %1, %2; selp.u32 %0, 0, 1, p; }" : "=r"(holds) : "f"(a), "f"(b));
  return holds != 0;
}

// a <= b; false for NaN.
__device__ inline bool less_equal(float a, float b) {
  u32 holds;
  asm("{ .reg .pred p; setp.gtu.f32 p, %1, %2; selp.u32 %0, 0, 1, p; }" : "=r"(holds) : "f"(a), "f"(b));
  return holds != 0;
}

// Minimum of two reals, ignoring NaN, as the negated maximum of the negated operands. ptxas would turn
// max(min(x, 1), 0) into a saturation, which is 0 and not 1 for NaN (seen with CUDA 13.0, for every architecture).
__device__ inline float minimum(float a, float b) {
  float smaller;
  asm("{ .reg .f32 x, y; neg.f32 x, %1; neg.f32 y, %2; max.f32 x, x, y; neg.f32 %0, x; }"
      : "=f"(smaller)
      : "f"(a), "f"(b));
  return smaller;
}

// Minimum; NaN if either operand is NaN.
__device__ inline float minimum_nan(float a, float b) {
  float smaller;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
  return smaller;
}

// Maximum; NaN if either operand is NaN.
__device__ inline float maximum_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

// a < b in f64; false for NaN.
__device__ inline bool less(double a, double b) {
  u32 holds;
  asm("{ .reg .pred p; setp.geu.f64 p, %1, %2; selp.u32 %0, 0, 1, p; }" : "=r"(holds) : "d"(a), "d"(b));
  return holds != 0;
}

// a <= b in f64; false for NaN.
__device__ inline bool less_equal(double a, double b) {
  u32 holds;
  asm("{ .reg .pred p; setp.gtu.f64 p, %1, %2; selp.u32 %0, 0, 1, p; }" : "=r"(holds) : "d"(a), "d"(b));
  return holds != 0;
}
