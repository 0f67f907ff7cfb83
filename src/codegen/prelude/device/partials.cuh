// Sets a flag for another CTA, which then sees all writes that this thread knows of (PTX ISA, "Release and Acquire
// Patterns").
__device__ inline void set_flag(u32* flag) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1u) : "memory");
}

// Waits until a flag is set, and clears it.
__device__ inline void wait_flag(u32* flag) {
  u32 raised;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
  } while (!raised);
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(0u) : "memory");
}

// Loads four floats that another CTA has written, from L2.
__device__ inline void load_partial(float* out, const float* at) {
  asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3])
               : "l"(at)
               : "memory");
}
