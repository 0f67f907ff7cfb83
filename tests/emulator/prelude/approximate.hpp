__device__ inline float exp2_approximate(float x) { return exp2f(x); }

__device__ inline float reciprocal_approximate(float x) { return 1.0f / x; }
