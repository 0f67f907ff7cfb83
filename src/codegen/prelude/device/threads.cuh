// Index of this thread in its CTA.
__device__ inline int thread_index() { return static_cast<int>(threadIdx.x); }

// Index of this thread in its warp of 32.
__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % 32); }

// Index of this thread's warp in the CTA.
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x / 32); }

// Index of this CTA in the launch.
__device__ inline u32 block_index() { return blockIdx.x; }

// Number of CTAs in the launch.
__device__ inline u32 grid_size() { return gridDim.x; }

// Waits for all threads of the CTA, which then see each other's writes.
__device__ inline void barrier() { __syncthreads(); }

// Waits for all threads of the warp, which then see each other's writes.
__device__ inline void warp_barrier() { __syncwarp(); }

// The CTA's dynamic shared memory.
__device__ inline char* shared_memory() {
  extern __shared__ __align__(128) char memory[];
  return memory;
}

// The same, aligned for panels, whose swizzle depends on the address.
__device__ inline char* panel_memory() {
  extern __shared__ __align__(1024) char panels[];
  return panels;
}

// Returns the pointer. Reads through it cannot move above this point.
template <class T>
__device__ inline T* from_here(T* pointer) {
  asm volatile("" : "+l"(pointer));
  return pointer;
}
