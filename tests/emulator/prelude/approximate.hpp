__device__ inline float exp2_approximate(float x) { return exp2f(x); }

__device__ inline float reciprocal_approximate(float x) { return 1.0f / x; }

__device__ inline float sin_approximate(float x) { return __builtin_sinf(x); }

__device__ inline float cos_approximate(float x) { return __builtin_cosf(x); }

__device__ inline float tanh_approximate(float x) { return __builtin_tanhf(x); }

__device__ inline float log2_approximate(float x) { return __builtin_log2f(x); }

__device__ inline float sqrt_approximate(float x) { return __builtin_sqrtf(x); }
