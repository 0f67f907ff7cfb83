// Stores an element where other threads may store, too: one of the values stays.
template <class T>
__device__ inline void scatter_element(T* to, T x) {
  *to = x;
}

// Adds to an element that other threads may add to as well.
template <class T>
__device__ inline void atomic_add(T* to, T x) {
  atomicAdd(to, x);
}

// Adds to a 64-bit integer; sums wrap.
__device__ inline void atomic_add(i64* to, i64 x) { atomicAdd(reinterpret_cast<u64*>(to), static_cast<u64>(x)); }
