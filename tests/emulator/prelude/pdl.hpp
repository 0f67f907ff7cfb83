__device__ inline void griddep_wait() { emulated_griddep_wait(); }

__device__ inline void griddep_launch_dependents() {}
