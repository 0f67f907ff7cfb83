// Sums over pairs of lanes, this one and `lane_index() ^ mask`: of N registers each lane adds up one half, the one with
// the bit the upper, and has it in the first N / 2.
template <int N, class T>
__device__ inline void add_halves(T* x, int mask) {
  const bool upper = (lane_index() & mask) != 0;
  for (int i = 0; i < N / 2; ++i) {
    const T own = upper ? x[i + N / 2] : x[i], other = upper ? x[i] : x[i + N / 2];
    x[i] = wrap_add(own, shuffle_xor(other, mask));
  }
}

// What add_halves shared out: all N registers for both lanes.
template <int N, class T>
__device__ inline void gather_halves(T* x, int mask) {
  const bool upper = (lane_index() & mask) != 0;
  for (int i = 0; i < N / 2; ++i) {
    const T own = x[i], other = shuffle_xor(own, mask);
    x[i] = upper ? other : own;
    x[i + N / 2] = upper ? own : other;
  }
}
