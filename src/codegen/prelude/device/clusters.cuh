// This block's number in its cluster.
__device__ inline int cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

// Blocks of a cluster.
__device__ inline int cluster_size() {
  u32 size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return static_cast<int>(size);
}

// Waits for all threads of the cluster; each then sees what the others wrote (PTX ISA, "barrier.cluster").
__device__ inline void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// Four floats at the same place in the shared memory of another block of the cluster.
__device__ inline void load_from_block(float* out, const float* at, int rank) {
  asm volatile(
      "{\n.reg .u32 there;\nmapa.shared::cluster.u32 there, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
      : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
      : "r"(shared_address(at)), "r"(rank)
      : "memory");
}
