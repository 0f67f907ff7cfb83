// Stores an element where other threads may store, too: one of the values stays.
template <class T>
__device__ inline void scatter_element(T* to, T x) {
  if constexpr (sizeof(T) == 1) {
    asm volatile("st.relaxed.gpu.u8 [%0], %1;" ::"l"(to), "r"(static_cast<u32>(*reinterpret_cast<u8*>(&x))) : "memory");
  } else if constexpr (sizeof(T) == 2) {
    asm volatile("st.relaxed.gpu.u16 [%0], %1;" ::"l"(to), "h"(*reinterpret_cast<u16*>(&x)) : "memory");
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(to), "r"(*reinterpret_cast<u32*>(&x)) : "memory");
  } else {
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(to), "l"(*reinterpret_cast<u64*>(&x)) : "memory");
  }
}

// Adds to an element that other threads may add to as well.
template <class T>
__device__ inline void atomic_add(T* to, T x) {
  atomicAdd(to, x);
}

// Adds to a 64-bit integer; sums wrap.
__device__ inline void atomic_add(i64* to, i64 x) { atomicAdd(reinterpret_cast<u64*>(to), static_cast<u64>(x)); }
