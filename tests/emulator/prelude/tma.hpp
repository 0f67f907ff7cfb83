__device__ inline void prefetch_map(const TensorMap*) {}

__device__ inline void tma_load(const TensorMap* map, void* to_shared, u64* at, int x, int y) {
  const int coordinates[] = {x, y};
  emulated_box_load(map, to_shared, at, coordinates, 2);
}

__device__ inline void tma_load(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z) {
  const int coordinates[] = {x, y, z};
  emulated_box_load(map, to_shared, at, coordinates, 3);
}

__device__ inline void tma_load(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z, int w) {
  const int coordinates[] = {x, y, z, w};
  emulated_box_load(map, to_shared, at, coordinates, 4);
}

__device__ inline void tma_load(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z, int w, int v) {
  const int coordinates[] = {x, y, z, w, v};
  emulated_box_load(map, to_shared, at, coordinates, 5);
}

__device__ inline void tma_store(const TensorMap* map, const void* from_shared, int x, int y) {
  const int coordinates[] = {x, y};
  emulated_box_store(map, from_shared, coordinates, 2);
}

__device__ inline void tma_store(const TensorMap* map, const void* from_shared, int x, int y, int z) {
  const int coordinates[] = {x, y, z};
  emulated_box_store(map, from_shared, coordinates, 3);
}

__device__ inline void tma_store(const TensorMap* map, const void* from_shared, int x, int y, int z, int w) {
  const int coordinates[] = {x, y, z, w};
  emulated_box_store(map, from_shared, coordinates, 4);
}

__device__ inline void tma_store(const TensorMap* map, const void* from_shared, int x, int y, int z, int w, int v) {
  const int coordinates[] = {x, y, z, w, v};
  emulated_box_store(map, from_shared, coordinates, 5);
}

__device__ inline void tma_store_commit() { emulated_box_store_commit(); }

template <int Pending>
__device__ inline void tma_store_wait() {
  emulated_box_store_wait(Pending);
}

__device__ inline void async_proxy_fence() { emulated_proxy_fence(); }
