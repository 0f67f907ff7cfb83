__device__ inline void raise_flag(u32* flag) { emulated_raise_flag(flag); }

__device__ inline void await_flag(u32* flag) { emulated_await_flag(flag); }

__device__ inline void load_part(float* out, const float* at) {
  *reinterpret_cast<Vector<float, 4>*>(out) = *reinterpret_cast<const Vector<float, 4>*>(at);
}
