// The value of x in lane `lane_index() ^ mask`.
template <class T>
__device__ inline T shuffle_xor(T x, int mask) {
  return static_cast<T>(__shfl_xor_sync(0xffffffffu, x, mask));
}

// The value of x in lane `lane`.
template <class T>
__device__ inline T shuffle(T x, int lane) {
  return static_cast<T>(__shfl_sync(0xffffffffu, x, lane));
}

// The value of x `delta` lanes below this one, where there is one; else its own.
template <class T>
__device__ inline T shuffle_up(T x, int delta) {
  return static_cast<T>(__shfl_up_sync(0xffffffffu, x, static_cast<u32>(delta)));
}
