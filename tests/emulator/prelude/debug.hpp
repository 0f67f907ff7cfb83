__device__ inline void debug_fail(const char* what, int line) { emulated_fail(what, line); }
