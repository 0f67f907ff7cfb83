template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f8e4m3_n32(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f8e4m3, 32, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f8e4m3_n48(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f8e4m3, 48, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f8e4m3_n64(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f8e4m3, 64, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f8e4m3_n96(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f8e4m3, 96, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f8e4m3_n128(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f8e4m3, 128, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f8e5m2_n32(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f8e5m2, 32, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f8e5m2_n48(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f8e5m2, 48, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f8e5m2_n64(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f8e5m2, 64, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f8e5m2_n96(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f8e5m2, 96, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_f8e5m2_n128(float* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_f8e5m2, 128, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_i8_n64(int* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_i8, 64, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_i8_n96(int* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_i8, 96, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_i8_n128(int* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_i8, 128, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_i8_n192(int* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_i8, 192, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_i8_n256(int* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_i8, 256, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_u8_n64(int* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_u8, 64, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_u8_n96(int* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_u8, 96, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_u8_n128(int* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_u8, 128, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_u8_n192(int* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_u8, 192, transposed_a, transposed_b, d, a, b, adds);
}

template <int transposed_a, int transposed_b>
__device__ inline void wgmma_u8_n256(int* d, u64 a, u64 b, bool adds) {
  emulated_wgmma(emulated_u8, 256, transposed_a, transposed_b, d, a, b, adds);
}
