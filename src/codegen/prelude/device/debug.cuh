// Reports a failed check of TESSERA_DEBUG and ends the kernel.
__device__ inline void debug_fail(const char* what, int line) {
  printf("tessera: kernel check failed: %s (line %d, block %u, thread %u)\n", what, line, blockIdx.x, threadIdx.x);
  __trap();
}
