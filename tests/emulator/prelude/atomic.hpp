template <class T>
__device__ inline void scatter_element(T* to, T x) {
  emulated_contended_write(to, &x, sizeof x);
}

template <class T>
__device__ inline void atomic_add(T* to, T x) {
  emulated::atomic_add(to, x);
}

__device__ inline void atomic_add(i64* to, i64 x) { emulated::atomic_add(to, x); }
