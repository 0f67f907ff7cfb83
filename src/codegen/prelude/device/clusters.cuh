// Rank of this CTA in its cluster.
__device__ inline int cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

// Number of CTAs in a cluster.
__device__ inline int cluster_size() {
  u32 size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return static_cast<int>(size);
}

// Cluster barrier: waits for all threads of the cluster, which then see each other's writes (PTX ISA,
// "barrier.cluster").
__device__ inline void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// Loads four floats from the same address in the shared memory of another CTA of the cluster.
__device__ inline void load_from_block(float* out, const float* at, int rank) {
  asm volatile(
      "{\n.reg .u32 there;\nmapa.shared::cluster.u32 there, %4, %5;\n"
      "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
      : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
      : "r"(shared_address(at)), "r"(rank)
      : "memory");
}
