template <int transposed_a, int transposed_b>
__device__ inline void wgmma_tf32_n64(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_tf32, 64, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_tf32_n96(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_tf32, 96, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_tf32_n128(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_tf32, 128, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_tf32_n192(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_tf32, 192, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_tf32_n256(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_tf32, 256, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_tf32_n64(float* d, const float* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_tf32, 64, transposed_b, d, reinterpret_cast<const u32*>(a), b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_tf32_n96(float* d, const float* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_tf32, 96, transposed_b, d, reinterpret_cast<const u32*>(a), b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_tf32_n128(float* d, const float* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_tf32, 128, transposed_b, d, reinterpret_cast<const u32*>(a), b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_tf32_n192(float* d, const float* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_tf32, 192, transposed_b, d, reinterpret_cast<const u32*>(a), b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_tf32_n256(float* d, const float* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_tf32, 256, transposed_b, d, reinterpret_cast<const u32*>(a), b, adds);
}
