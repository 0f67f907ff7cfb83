// Adds registers across a pair of lanes, this one and `lane_index() ^ mask`. Each lane adds one half of N registers,
// the upper half if its bit of `mask` is set, and leaves the sums in the first N / 2.
template <int N, class T>
__device__ inline void add_halves(T* x, int mask) {
  const bool upper = (lane_index() & mask) != 0;
  for (int i = 0; i < N / 2; ++i) {
    const T own = upper ? x[i + N / 2] : x[i], other = upper ? x[i] : x[i + N / 2];
    x[i] = wrap_add(own, shuffle_xor(other, mask));
  }
}

// Inverse of how add_halves distributes the sums: both lanes get all N registers.
template <int N, class T>
__device__ inline void gather_halves(T* x, int mask) {
  const bool upper = (lane_index() & mask) != 0;
  for (int i = 0; i < N / 2; ++i) {
    const T own = x[i], other = shuffle_xor(own, mask);
    x[i] = upper ? other : own;
    x[i + N / 2] = upper ? own : other;
  }
}
