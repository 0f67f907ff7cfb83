// The sum over this lane and those below it, of `lanes` lanes that are `step` apart.
template <int lanes, int step, class T>
__device__ inline T scan_lanes(T x) {
  const int position = lane_index() / step % lanes;
  for (int delta = 1; delta < lanes; delta *= 2) {
    const T below = shuffle_up(x, delta * step);
    if (position >= delta) x = wrap_add(below, x);
  }
  return x;
}

// What the lane below has, of as many; nothing in the lowest.
template <int lanes, int step, class T>
__device__ inline T lane_below(T x) {
  const T below = shuffle_up(x, step);
  return lane_index() / step % lanes > 0 ? below : T(0);
}

// What the highest of such lanes has.
template <int lanes, int step, class T>
__device__ inline T highest_lane(T x) {
  return shuffle(x, lane_index() | (lanes - 1) * step);
}

// The sum of all numbers before one of 32, of which each lane has that of all up to its own.
template <class T>
__device__ inline T sum_before(T through, int number) {
  const T before = shuffle(through, (number + 31) % 32);
  return number > 0 ? before : T(0);
}
