__device__ inline void wait_for_previous() { emulated_wait_for_previous(); }

__device__ inline void let_next_begin() {}
