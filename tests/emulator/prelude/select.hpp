__device__ inline int select(bool first, int a, int b) { return first ? a : b; }

__device__ inline i64 select(bool first, i64 a, i64 b) { return first ? a : b; }
