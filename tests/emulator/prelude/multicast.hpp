__device__ inline void barrier_arrive_cluster(u64* at) { emulated_barrier_arrive_cluster(at); }

__device__ inline void tma_load_multicast(const TensorMap* map, void* to_shared, u64* at, int x, int y) {
  const int coordinates[] = {x, y};
  emulated_box_load_multicast(map, to_shared, at, coordinates, 2);
}

__device__ inline void tma_load_multicast(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z) {
  const int coordinates[] = {x, y, z};
  emulated_box_load_multicast(map, to_shared, at, coordinates, 3);
}

__device__ inline void tma_load_multicast(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z, int w) {
  const int coordinates[] = {x, y, z, w};
  emulated_box_load_multicast(map, to_shared, at, coordinates, 4);
}

__device__ inline void tma_load_multicast(const TensorMap* map, void* to_shared, u64* at, int x, int y, int z, int w,
                                          int v) {
  const int coordinates[] = {x, y, z, w, v};
  emulated_box_load_multicast(map, to_shared, at, coordinates, 5);
}
