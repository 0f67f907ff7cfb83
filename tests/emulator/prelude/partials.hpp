__device__ inline void set_flag(u32* flag) { emulated_set_flag(flag); }

__device__ inline void wait_flag(u32* flag) { emulated_wait_flag(flag); }

__device__ inline void load_partial(float* out, const float* at) {
  *reinterpret_cast<Vector<float, 4>*>(out) = *reinterpret_cast<const Vector<float, 4>*>(at);
}
