// x of lane `lane_index() ^ mask`.
template <class T>
__device__ inline T shuffle_xor(T x, int mask) {
  return static_cast<T>(__shfl_xor_sync(0xffffffffu, x, mask));
}

// x of lane `lane`.
template <class T>
__device__ inline T shuffle(T x, int lane) {
  return static_cast<T>(__shfl_sync(0xffffffffu, x, lane));
}

// x of the lane `delta` lanes below this one; this lane's own if there is none.
template <class T>
__device__ inline T shuffle_up(T x, int delta) {
  return static_cast<T>(__shfl_up_sync(0xffffffffu, x, static_cast<u32>(delta)));
}
