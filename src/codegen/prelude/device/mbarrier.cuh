// Initializes an mbarrier in shared memory (PTX ISA, "mbarrier") with the number of arrivals that complete a phase.
__device__ inline void barrier_init(u64* at, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(at)), "r"(arrivals));
}

// Makes initialized mbarriers visible to TMA as well.
__device__ inline void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Arrives, and makes the phase wait for `bytes` bytes of copies as well.
__device__ inline void barrier_expect(u64* at, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(at)), "r"(bytes)
               : "memory");
}

// Arrives at an mbarrier.
__device__ inline void barrier_arrive(u64* at) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(at)) : "memory");
}

// Waits until the phase of this parity is complete.
__device__ inline void barrier_wait(u64* at, u32 phase) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra over;\n"
      "bra again;\nover:\n}" ::"r"(shared_address(at)),
      "r"(phase)
      : "memory");
}

// Waits for `threads` threads at the named barrier `id`.
__device__ inline void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Arrives at a named barrier without waiting.
__device__ inline void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Increases the registers per thread to `registers`, from those that other warps of the CTA have released.
template <int registers>
__device__ inline void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// Reduces the registers per thread to `registers` and releases the rest.
template <int registers>
__device__ inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
