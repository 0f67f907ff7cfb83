__device__ inline int thread_index() { return emulated_thread_index(); }

__device__ inline int lane_index() { return emulated_thread_index() % 32; }

__device__ inline int warp_index() { return emulated_thread_index() / 32; }

__device__ inline u32 block_index() { return static_cast<u32>(emulated_block_index()); }

__device__ inline u32 grid_size() { return static_cast<u32>(emulated_grid_size()); }

__device__ inline void barrier() { emulated_barrier(); }

__device__ inline void warp_barrier() { emulated_warp_barrier(); }

__device__ inline char* shared_memory() { return emulated_shared_memory(); }

__device__ inline char* panel_memory() { return emulated_shared_memory(); }

template <class T>
__device__ inline T* from_here(T* pointer) {
  return pointer;
}
