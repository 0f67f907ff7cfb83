__device__ inline void grid_arrive(const GridBarrier& own) {
  emulated_barrier();
  if (emulated_thread_index() == 0) emulated_grid_arrive(own.arrivals);
}

template <int threads>
__device__ inline void grid_wait(const GridBarrier& previous) {
  if (emulated_thread_index() == 0) emulated_grid_wait(previous.arrivals, previous.expected);
  emulated_named_barrier(1, threads, true);
}

__device__ inline void grid_leave(const GridBarrier& own) {
  emulated_barrier();
  if (emulated_thread_index() == 0) emulated_grid_leave(own.arrivals, own.expected);
}
