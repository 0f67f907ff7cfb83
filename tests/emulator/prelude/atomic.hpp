template <class T>
__device__ inline void scatter_element(T* to, T x) {
  emulated_contended_write(to, &x, sizeof x);
}

template <int count>
__device__ inline void scatter_words(void* to, const u32* words) {
  for (int i = 0; i < count; ++i) scatter_element(static_cast<u32*>(to) + i, words[i]);
}

template <class Scope>
__device__ inline void fence_memory() {
  emulated_fence(Scope::reach);
}

template <class Scope>
__device__ inline u32 relaxed_load(const u32* at) {
  return emulated::atomic(emulated_load, Scope::reach, const_cast<u32*>(at), 0u, 0u);
}

template <class Scope>
__device__ inline u64 relaxed_load(const u64* at) {
  return emulated::atomic(emulated_load, Scope::reach, const_cast<u64*>(at), static_cast<u64>(0), static_cast<u64>(0));
}

template <class Scope, class T>
__device__ inline T relaxed_add(T* to, T x) {
  return emulated::atomic(emulated_add, Scope::reach, to, x, x);
}

template <class Scope, class T>
__device__ inline T relaxed_max(T* to, T x) {
  return emulated::atomic(emulated_max, Scope::reach, to, x, x);
}

template <class Scope, class T>
__device__ inline T relaxed_min(T* to, T x) {
  return emulated::atomic(emulated_min, Scope::reach, to, x, x);
}

template <class Scope, class T>
__device__ inline T relaxed_and(T* to, T x) {
  return emulated::atomic(emulated_and, Scope::reach, to, x, x);
}

template <class Scope, class T>
__device__ inline T relaxed_or(T* to, T x) {
  return emulated::atomic(emulated_or, Scope::reach, to, x, x);
}

template <class Scope, class T>
__device__ inline T relaxed_xor(T* to, T x) {
  return emulated::atomic(emulated_xor, Scope::reach, to, x, x);
}

template <class Scope, class T>
__device__ inline T relaxed_exchange(T* to, T x) {
  return emulated::atomic(emulated_exchange, Scope::reach, to, x, x);
}

template <class Scope, class T>
__device__ inline T relaxed_compare_exchange(T* to, T expected, T x) {
  return emulated::atomic(emulated_compare_exchange, Scope::reach, to, x, expected);
}
