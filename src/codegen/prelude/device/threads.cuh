// This thread's index in its block.
__device__ inline int thread_index() { return static_cast<int>(threadIdx.x); }

// This thread's index in its warp of 32.
__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % 32); }

// The index of this thread's warp in the block.
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x / 32); }

// This block's index in the launch.
__device__ inline u32 block_index() { return blockIdx.x; }

// Blocks in the launch.
__device__ inline u32 grid_size() { return gridDim.x; }

// Waits for all threads of the block; each then sees what the others wrote.
__device__ inline void barrier() { __syncthreads(); }

// Waits for all threads of the warp; each then sees what the others wrote.
__device__ inline void warp_barrier() { __syncwarp(); }

// The shared memory that the launch gives to the block.
__device__ inline char* shared_memory() {
  extern __shared__ __align__(128) char memory[];
  return memory;
}

// The same, where panels lie in it, whose swizzle follows from the address.
__device__ inline char* panel_memory() {
  extern __shared__ __align__(1024) char panels[];
  return panels;
}

// The pointer, by which nothing is read ahead of here.
template <class T>
__device__ inline T* from_here(T* pointer) {
  asm volatile("" : "+l"(pointer));
  return pointer;
}
