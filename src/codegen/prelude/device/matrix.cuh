// ldmatrix: loads four 8x8 matrices of 16-bit elements from shared memory. Lane 8 m + r passes the address of row r of
// matrix m; each lane gets elements 2 (lane % 4) and the next of row lane / 4 of each matrix.
__device__ inline void load_matrix_x4(u32* out, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row))
               : "memory");
}

// ldmatrix of two 8x8 matrices; lanes 0 to 15 pass the addresses of their rows.
__device__ inline void load_matrix_x2(u32* out, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(shared_address(row))
               : "memory");
}

// Like load_matrix_x4, with each matrix transposed.
__device__ inline void load_matrix_x4_transposed(u32* out, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row))
               : "memory");
}

// Like load_matrix_x2, with each matrix transposed.
__device__ inline void load_matrix_x2_transposed(u32* out, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(shared_address(row))
               : "memory");
}

// mma.sync of a warp: c[16,8] += a[16,16] b[16,8], with f16 operands.
__device__ inline void mma_f16(float* c, const u32* a, const u32* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// mma.sync of a warp: c[16,8] += a[16,16] b[16,8], with bf16 operands.
__device__ inline void mma_bf16(float* c, const u32* a, const u32* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// mma.sync of a warp: c[16,8] += a[16,8] b[8,8], with tf32 operands.
__device__ inline void mma_tf32(float* c, const u32* a, const u32* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// mma.sync of a warp: c[16,8] += a[16,32] b[32,8], with i8 operands; accumulators wrap. A lane's four accumulators are
// c[0], c[apart], ...
template <int apart>
__device__ inline void mma_i8(int* c, const u32* a, const u32* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[apart]), "+r"(c[2 * apart]), "+r"(c[3 * apart])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// mma.sync of a warp: c[16,8] += a[16,32] b[32,8], with u8 operands; accumulators wrap. A lane's four accumulators are
// c[0], c[apart], ...
template <int apart>
__device__ inline void mma_u8(int* c, const u32* a, const u32* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[apart]), "+r"(c[2 * apart]), "+r"(c[3 * apart])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
