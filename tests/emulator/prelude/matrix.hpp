__device__ inline void load_matrix_x4(u32* out, const void* row) { emulated_load_matrix(out, row, 4, false); }

__device__ inline void load_matrix_x2(u32* out, const void* row) { emulated_load_matrix(out, row, 2, false); }

__device__ inline void load_matrix_x4_transposed(u32* out, const void* row) { emulated_load_matrix(out, row, 4, true); }

__device__ inline void load_matrix_x2_transposed(u32* out, const void* row) { emulated_load_matrix(out, row, 2, true); }

__device__ inline void mma_f16(float* c, const u32* a, const u32* b) { emulated_mma(emulated_f16, c, a, b); }

__device__ inline void mma_bf16(float* c, const u32* a, const u32* b) { emulated_mma(emulated_bf16, c, a, b); }

__device__ inline void mma_tf32(float* c, const u32* a, const u32* b) { emulated_mma(emulated_tf32, c, a, b); }

template <int apart>
__device__ inline void mma_i8(int* c, const u32* a, const u32* b) {
  u32 sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = static_cast<u32>(c[i * apart]);
  emulated_mma_bytes(true, sums, a, b);
  for (int i = 0; i < 4; ++i) c[i * apart] = static_cast<int>(sums[i]);
}

template <int apart>
__device__ inline void mma_u8(int* c, const u32* a, const u32* b) {
  u32 sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = static_cast<u32>(c[i * apart]);
  emulated_mma_bytes(false, sums, a, b);
  for (int i = 0; i < 4; ++i) c[i * apart] = static_cast<int>(sums[i]);
}
