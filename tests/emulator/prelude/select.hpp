__device__ inline int select(bool first, int a, int b) { return first ? a : b; }
