// 2^x, to 2^-22.
__device__ inline float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1 / x, to 2^-23.
__device__ inline float reciprocal_approximate(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// sin x, to 2^-20.5 up to 2 pi and to 2^-14.7 up to 100 pi.
__device__ inline float sin_approximate(float x) {
  float y;
  asm("sin.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// cos x, as accurate as sin_approximate.
__device__ inline float cos_approximate(float x) {
  float y;
  asm("cos.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// tanh x, to a relative error of 2^-11.
__device__ inline float tanh_approximate(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// log2 x, to 2^-22: a relative error outside of (0.5, 2), an absolute one inside.
__device__ inline float log2_approximate(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Square root, to a relative error of 2^-23.
__device__ inline float sqrt_approximate(float x) {
  float y;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
