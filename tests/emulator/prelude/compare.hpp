__device__ inline bool less(float a, float b) { return a < b; }

__device__ inline bool less_equal(float a, float b) { return a <= b; }

__device__ inline float minimum(float a, float b) { return fminf(a, b); }

__device__ inline float minimum_nan(float a, float b) { return a < b || a != a ? a : b; }

__device__ inline float maximum_nan(float a, float b) { return a > b || a != a ? a : b; }

__device__ inline bool less(double a, double b) { return a < b; }

__device__ inline bool less_equal(double a, double b) { return a <= b; }
