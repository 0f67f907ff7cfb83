// Barriers in shared memory (PTX ISA, "mbarrier"): one that `arrivals` threads must come to in each phase.
__device__ inline void barrier_init(u64* at, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(at)), "r"(arrivals));
}

// Those that were made are seen by the copy engine, too.
__device__ inline void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Arrives, and has the phase wait for so many bytes of copies as well.
__device__ inline void barrier_expect(u64* at, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(at)), "r"(bytes)
               : "memory");
}

// Arrives.
__device__ inline void barrier_arrive(u64* at) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(at)) : "memory");
}

// Waits until the phase of this parity is over.
__device__ inline void barrier_wait(u64* at, u32 phase) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra over;\n"
      "bra again;\nover:\n}" ::"r"(shared_address(at)),
      "r"(phase)
      : "memory");
}

// Waits for `threads` threads at barrier `id` of the hardware.
__device__ inline void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Comes to it without waiting.
__device__ inline void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Takes registers of a block's that others have given up.
template <int registers>
__device__ inline void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// Gives up all but so many.
template <int registers>
__device__ inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
