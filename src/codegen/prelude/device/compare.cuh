// Is a < b? Not of NaN. What ptxas knows of a value's range it takes to hold of NaN, too: |x| >= 0 is true to it (seen
// with CUDA 13.0, for every architecture). Comparisons that are true of NaN it keeps, so this is the opposite of one;
// in PTX, for the compiler ahead of ptxas would turn it round.
__device__ inline bool less(float a, float b) {
  u32 holds;
  asm("{ .reg .pred p; setp.geu.f32 p, %1, %2; selp.u32 %0, 0, 1, p; }" : "=r"(holds) : "f"(a), "f"(b));
  return holds != 0;
}

// Is a <= b? Not of NaN.
__device__ inline bool less_equal(float a, float b) {
  u32 holds;
  asm("{ .reg .pred p; setp.gtu.f32 p, %1, %2; selp.u32 %0, 0, 1, p; }" : "=r"(holds) : "f"(a), "f"(b));
  return holds != 0;
}

// The smaller of two reals, ignoring NaN: what is larger is the other way round, for ptxas makes a saturation of
// max(min(x, 1), 0), which of NaN is 0 and not 1 (seen with CUDA 13.0, for every architecture).
__device__ inline float minimum(float a, float b) {
  float smaller;
  asm("{ .reg .f32 x, y; neg.f32 x, %1; neg.f32 y, %2; max.f32 x, x, y; neg.f32 %0, x; }"
      : "=f"(smaller)
      : "f"(a), "f"(b));
  return smaller;
}

// The smaller, NaN if either is.
__device__ inline float minimum_nan(float a, float b) {
  float smaller;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
  return smaller;
}

// The larger, NaN if either is.
__device__ inline float maximum_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

// Is a < b, of f64? Not of NaN.
__device__ inline bool less(double a, double b) {
  u32 holds;
  asm("{ .reg .pred p; setp.geu.f64 p, %1, %2; selp.u32 %0, 0, 1, p; }" : "=r"(holds) : "d"(a), "d"(b));
  return holds != 0;
}

// Is a <= b, of f64? Not of NaN.
__device__ inline bool less_equal(double a, double b) {
  u32 holds;
  asm("{ .reg .pred p; setp.gtu.f64 p, %1, %2; selp.u32 %0, 0, 1, p; }" : "=r"(holds) : "d"(a), "d"(b));
  return holds != 0;
}
