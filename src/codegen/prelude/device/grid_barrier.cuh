// Arrives at the grid barrier of a persistent kernel; all threads of the CTA call it. CTAs that wait for the barrier
// then see their writes (PTX ISA, "Release and Acquire Patterns").
__device__ inline void grid_arrive(const GridBarrier& own) {
  barrier();
  if (thread_index() == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(own.arrivals) : "memory");
}

// Waits for the arrivals of all CTAs at a grid barrier. The first `threads` threads of the CTA call it; the others do
// not access what other CTAs have written.
template <int threads>
__device__ inline void grid_wait(const GridBarrier& previous) {
  if (thread_index() == 0) {
    u32 arrived;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(previous.arrivals) : "memory");
    } while (arrived < previous.expected);
  }
  named_barrier(1, threads);
}

// Arrives at the last grid barrier, for which no CTA waits. The last of all arrivals resets their number to 0, so that
// the next launch finds it.
__device__ inline void grid_leave(const GridBarrier& own) {
  barrier();
  if (thread_index() != 0) return;
  u32 before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(own.arrivals) : "memory");
  if (before + 1 == own.expected) asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(own.arrivals) : "memory");
}
