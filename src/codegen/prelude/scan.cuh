// The sum over this lane and those below it.
template <class T>
__device__ inline T warp_scan(T x) {
  for (int delta = 1; delta < 32; delta *= 2) {
    const T below = shuffle_up(x, delta);
    if (lane_index() >= delta) x = wrap_add(below, x);
  }
  return x;
}

// Inclusive sums in place along the middle axis of [lines / inner, extent, inner]: a line per warp, 32 elements at a
// time. The caller puts a barrier before and after.
template <class T>
__device__ inline void scan_lines(T* data, int lines, int extent, int inner, int threads) {
  for (int line = warp_index(); line < lines; line += threads / 32) {
    T* const first = data + line / inner * extent * inner + line % inner;
    T carry = 0;
    for (int begin = 0; begin < extent; begin += 32) {
      const int i = begin + lane_index();
      const T sum = wrap_add(carry, warp_scan(i < extent ? first[i * inner] : T(0)));
      if (i < extent) first[i * inner] = sum;
      carry = shuffle(sum, 31);
    }
  }
}
