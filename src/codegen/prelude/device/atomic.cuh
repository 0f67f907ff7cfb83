// Stores an element that other threads may store at the same time; one of the values remains.
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

// The same for the words of neighboring elements.
template <int count>
__device__ inline void scatter_words(void* to, const u32* words) {
  if constexpr (count == 1) {
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(to), "r"(words[0]) : "memory");
  } else if constexpr (count == 2) {
    asm volatile("st.relaxed.gpu.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(words[0]), "r"(words[1]) : "memory");
  } else {
    asm volatile("st.relaxed.gpu.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]),
                 "r"(words[2]), "r"(words[3])
                 : "memory");
  }
}

// Fence that orders accesses known to this thread before those after the fence, for the threads of the scope, by means
// of atomic reads and writes on either side (PTX ISA, "Release and Acquire Patterns").
template <class Scope>
__device__ inline void fence_memory() {
  if constexpr (Scope::reach == 0)
    asm volatile("fence.acq_rel.cta;" ::: "memory");
  else if constexpr (Scope::reach == 1)
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
  else
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

// Reads a word that other threads may change.
template <class Scope>
__device__ inline u32 relaxed_load(const u32* at) {
  u32 word;
  if constexpr (Scope::reach == 0)
    asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(word) : "l"(at) : "memory");
  else if constexpr (Scope::reach == 1)
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(word) : "l"(at) : "memory");
  else
    asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(word) : "l"(at) : "memory");
  return word;
}

// Reads a 64-bit word that other threads may change.
template <class Scope>
__device__ inline u64 relaxed_load(const u64* at) {
  u64 word;
  if constexpr (Scope::reach == 0)
    asm volatile("ld.relaxed.cta.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
  else if constexpr (Scope::reach == 1)
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
  else
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
  return word;
}

// Atomic add to a word, a float or a double; returns the old value.
template <class Scope, class T>
__device__ inline T relaxed_add(T* to, T x) {
  if constexpr (Scope::reach == 0)
    return atomicAdd_block(to, x);
  else if constexpr (Scope::reach == 1)
    return atomicAdd(to, x);
  else
    return atomicAdd_system(to, x);
}

// Atomic maximum of integers; returns the old value.
template <class Scope, class T>
__device__ inline T relaxed_max(T* to, T x) {
  if constexpr (Scope::reach == 0)
    return atomicMax_block(to, x);
  else if constexpr (Scope::reach == 1)
    return atomicMax(to, x);
  else
    return atomicMax_system(to, x);
}

// Atomic minimum of integers; returns the old value.
template <class Scope, class T>
__device__ inline T relaxed_min(T* to, T x) {
  if constexpr (Scope::reach == 0)
    return atomicMin_block(to, x);
  else if constexpr (Scope::reach == 1)
    return atomicMin(to, x);
  else
    return atomicMin_system(to, x);
}

// Atomic bitwise and; returns the old value.
template <class Scope, class T>
__device__ inline T relaxed_and(T* to, T x) {
  if constexpr (Scope::reach == 0)
    return atomicAnd_block(to, x);
  else if constexpr (Scope::reach == 1)
    return atomicAnd(to, x);
  else
    return atomicAnd_system(to, x);
}

// Atomic bitwise or; returns the old value.
template <class Scope, class T>
__device__ inline T relaxed_or(T* to, T x) {
  if constexpr (Scope::reach == 0)
    return atomicOr_block(to, x);
  else if constexpr (Scope::reach == 1)
    return atomicOr(to, x);
  else
    return atomicOr_system(to, x);
}

// Atomic bitwise exclusive or; returns the old value.
template <class Scope, class T>
__device__ inline T relaxed_xor(T* to, T x) {
  if constexpr (Scope::reach == 0)
    return atomicXor_block(to, x);
  else if constexpr (Scope::reach == 1)
    return atomicXor(to, x);
  else
    return atomicXor_system(to, x);
}

// Atomic exchange; returns the old value.
template <class Scope, class T>
__device__ inline T relaxed_exchange(T* to, T x) {
  if constexpr (Scope::reach == 0)
    return atomicExch_block(to, x);
  else if constexpr (Scope::reach == 1)
    return atomicExch(to, x);
  else
    return atomicExch_system(to, x);
}

// Atomic compare-and-swap: stores x if the word is `expected`; returns the old value.
template <class Scope, class T>
__device__ inline T relaxed_compare_exchange(T* to, T expected, T x) {
  if constexpr (Scope::reach == 0)
    return atomicCAS_block(to, expected, x);
  else if constexpr (Scope::reach == 1)
    return atomicCAS(to, expected, x);
  else
    return atomicCAS_system(to, expected, x);
}
