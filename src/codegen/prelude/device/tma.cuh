// Prefetches a TMA descriptor.
__device__ inline void prefetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// TMA load of the box of a tensor at x, y to shared memory; the mbarrier counts its bytes.
__device__ inline void tma_load(const TensorMap* map, void* to_shared, u64* at, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[%2];" ::"r"(shared_address(to_shared)),
      "l"(map), "r"(shared_address(at)), "r"(x), "r"(y)
      : "memory");
}

// The same for a tensor with three axes.
__device__ inline void tma_load(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(shared_address(to_shared)),
      "l"(map), "r"(shared_address(at)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// The same for a tensor with four axes.
__device__ inline void tma_load(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(to_shared)),
      "l"(map), "r"(shared_address(at)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// The same for a tensor with five axes.
__device__ inline void tma_load(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z, int w, int v) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, "
      "%7}], [%2];" ::"r"(shared_address(to_shared)),
      "l"(map), "r"(shared_address(at)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
      : "memory");
}

// TMA store from shared memory to the box of a tensor at x, y, neither of which may be negative.
__device__ inline void tma_store(const TensorMap* map, const void* from_shared, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(shared_address(from_shared)), "r"(x), "r"(y)
               : "memory");
}

// The same for a tensor with three axes.
__device__ inline void tma_store(const TensorMap* map, const void* from_shared, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
               "r"(shared_address(from_shared)), "r"(x), "r"(y), "r"(z)
               : "memory");
}

// The same for a tensor with four axes.
__device__ inline void tma_store(const TensorMap* map, const void* from_shared, int x, int y, int z, int w) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
               "r"(shared_address(from_shared)), "r"(x), "r"(y), "r"(z), "r"(w)
               : "memory");
}

// The same for a tensor with five axes.
__device__ inline void tma_store(const TensorMap* map, const void* from_shared, int x, int y, int z, int w, int v) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(map),
      "r"(shared_address(from_shared)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(v)
      : "memory");
}

// Commits a group: the TMA stores that this thread has started since the last commit.
__device__ inline void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until all but the last `Pending` groups of this thread have read shared memory.
template <int Pending>
__device__ inline void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

// Makes this thread's writes to shared memory visible to TMA and the tensor cores (async proxy).
__device__ inline void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
