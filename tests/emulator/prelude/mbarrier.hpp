__device__ inline void barrier_init(u64* at, int arrivals) { emulated_barrier_init(at, arrivals); }

__device__ inline void barrier_init_fence() { emulated_barrier_init_fence(); }

__device__ inline void barrier_expect(u64* at, int bytes) { emulated_barrier_arrive(at, bytes); }

__device__ inline void barrier_arrive(u64* at) { emulated_barrier_arrive(at, 0); }

__device__ inline void barrier_wait(u64* at, u32 phase) { emulated_barrier_wait(at, phase); }

__device__ inline void named_barrier(int id, int threads) { emulated_named_barrier(id, threads, true); }

__device__ inline void named_barrier_arrive(int id, int threads) { emulated_named_barrier(id, threads, false); }

template <int registers>
__device__ inline void setmaxnreg_inc() {
  emulated_take_registers(registers);
}

template <int registers>
__device__ inline void setmaxnreg_dec() {
  emulated_give_registers(registers);
}
