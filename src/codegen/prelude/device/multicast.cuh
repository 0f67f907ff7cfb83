// Arrives at the mbarrier at this place in each CTA of the cluster.
__device__ inline void barrier_arrive_cluster(u64* at) {
  for (int rank = 0; rank < cluster_size(); ++rank)
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(shared_address(at)),
        "r"(rank)
        : "memory");
}

// TMA load of the box of a tensor at x, y to this place in each CTA of the cluster, whose mbarrier at this place counts
// its bytes (PTX ISA, "cp.async.bulk.tensor", multicast::cluster).
__device__ inline void tma_load_multicast(const TensorMap* map, void* to_shared, u64* at, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%4, %5}], [%2], %3;" ::"r"(shared_address(to_shared)),
      "l"(map), "r"(shared_address(at)), "h"(all_of_cluster()), "r"(x), "r"(y)
      : "memory");
}

// The same for a tensor with three axes.
__device__ inline void tma_load_multicast(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%4, %5, %6}], [%2], %3;" ::"r"(shared_address(to_shared)),
      "l"(map), "r"(shared_address(at)), "h"(all_of_cluster()), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// The same for a tensor with four axes.
__device__ inline void tma_load_multicast(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(shared_address(to_shared)),
      "l"(map), "r"(shared_address(at)), "h"(all_of_cluster()), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// The same for a tensor with five axes.
__device__ inline void tma_load_multicast(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z, int w,
                                          int v) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(shared_address(to_shared)),
      "l"(map), "r"(shared_address(at)), "h"(all_of_cluster()), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
      : "memory");
}
