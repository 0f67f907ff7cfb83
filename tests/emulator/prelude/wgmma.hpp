__device__ inline void wgmma_fence() { emulated_wgmma_fence(); }

__device__ inline void wgmma_commit() { emulated_wgmma_commit(); }

template <int Pending>
__device__ inline void wgmma_wait() {
  emulated_wgmma_wait(Pending);
}

template <int count>
__device__ inline void register_fence(float (&d)[count]) {
  asm volatile("" ::"r"(d) : "memory");
}

template <int count>
__device__ inline void register_fence(int (&d)[count]) {
  asm volatile("" ::"r"(d) : "memory");
}

__device__ inline void store_matrix(void* to_shared, u32 a, u32 b, u32 c, u32 d) {
  const u32 registers[] = {a, b, c, d};
  emulated_store_matrix(to_shared, registers, false);
}

__device__ inline void store_matrix_transposed(void* to_shared, u32 a, u32 b, u32 c, u32 d) {
  const u32 registers[] = {a, b, c, d};
  emulated_store_matrix(to_shared, registers, true);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_bf16_n16(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_bf16, 16, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_bf16_n32(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_bf16, 32, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_bf16_n64(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_bf16, 64, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_bf16_n96(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_bf16, 96, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_bf16_n128(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_bf16, 128, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_bf16_n160(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_bf16, 160, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_bf16_n176(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_bf16, 176, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_bf16_n192(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_bf16, 192, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_bf16_n256(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_bf16, 256, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f16_n16(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f16, 16, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f16_n32(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f16, 32, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f16_n64(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f16, 64, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f16_n96(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f16, 96, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f16_n128(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f16, 128, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f16_n160(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f16, 160, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f16_n176(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f16, 176, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f16_n192(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f16, 192, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f16_n256(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f16, 256, transposed_a, transposed_b, d, a, b, adds);
}
