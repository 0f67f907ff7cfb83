template <int count>
__device__ inline void fragment_fence(u32 (&a)[count]) {
  asm volatile("" ::"r"(a) : "memory");
}

template <int transposed_b>
__device__ inline void wgmma_left_bf16_n16(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_bf16, 16, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_bf16_n32(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_bf16, 32, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_bf16_n64(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_bf16, 64, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_bf16_n96(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_bf16, 96, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_bf16_n128(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_bf16, 128, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_bf16_n160(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_bf16, 160, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_bf16_n176(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_bf16, 176, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_bf16_n192(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_bf16, 192, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_bf16_n256(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_bf16, 256, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f16_n16(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f16, 16, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f16_n32(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f16, 32, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f16_n64(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f16, 64, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f16_n96(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f16, 96, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f16_n128(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f16, 128, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f16_n160(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f16, 160, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f16_n176(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f16, 176, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f16_n192(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f16, 192, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f16_n256(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f16, 256, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f8e4m3_n32(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f8e4m3, 32, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f8e4m3_n48(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f8e4m3, 48, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f8e4m3_n64(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f8e4m3, 64, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f8e4m3_n96(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f8e4m3, 96, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f8e4m3_n128(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f8e4m3, 128, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f8e5m2_n32(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f8e5m2, 32, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f8e5m2_n48(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f8e5m2, 48, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f8e5m2_n64(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f8e5m2, 64, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f8e5m2_n96(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f8e5m2, 96, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_f8e5m2_n128(float* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_f8e5m2, 128, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_i8_n64(int* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_i8, 64, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_i8_n96(int* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_i8, 96, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_i8_n128(int* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_i8, 128, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_i8_n192(int* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_i8, 192, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_i8_n256(int* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_i8, 256, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_u8_n64(int* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_u8, 64, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_u8_n96(int* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_u8, 96, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_u8_n128(int* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_u8, 128, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_u8_n192(int* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_u8, 192, transposed_b, d, a, b, adds);
}

template <int transposed_b>
__device__ inline void wgmma_left_u8_n256(int* d, const u32* a, u64 b, bool adds) {
  emulated_wgmma_left(emulated_u8, 256, transposed_b, d, a, b, adds);
}
