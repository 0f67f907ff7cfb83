// Makes earlier writes to registers and shared memory visible to wgmma.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Commits a group: the wgmma instructions that this warp group has issued since the last commit.
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most `Pending` groups are incomplete.
template <int Pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Keeps the compiler from moving accesses to these registers across this point.
template <int count>
__device__ inline void register_fence(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// The same for accumulators of integers.
template <int count>
__device__ inline void register_fence(int (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

// stmatrix: stores an 8x8 matrix of 16-bit elements from each of four registers of a warp to the rows whose addresses
// its lanes pass.
__device__ inline void store_matrix(void* to_shared, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(to_shared)),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

// The same for the transposes of the matrices.
__device__ inline void store_matrix_transposed(void* to_shared, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   shared_address(to_shared)),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

// Keeps the compiler from moving accesses to these registers of a left operand across this point.
template <int count>
__device__ inline void fragment_fence(u32 (&a)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(a[i])::"memory");
}
