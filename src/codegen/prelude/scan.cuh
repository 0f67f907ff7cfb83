// Position in scan order of this lane among `lanes` lanes that are `step` apart.
template <int lanes, int step, bool reverse>
__device__ inline int scan_position() {
  const int position = lane_index() / step % lanes;
  return reverse ? lanes - 1 - position : position;
}

// x of the lane `delta` positions earlier in scan order; any value if there is none.
template <int step, bool reverse, class T>
__device__ inline T lanes_before(T x, int delta) {
  return reverse ? shuffle(x, (lane_index() + delta * step) & 31) : shuffle_up(x, delta * step);
}

// Inclusive scan of x over `lanes` lanes that are `step` apart.
template <int lanes, int step, bool reverse = false, class T, class Combine>
__device__ inline T scan_lanes(T x, Combine combine) {
  const int position = scan_position<lanes, step, reverse>();
  for (int delta = 1; delta < lanes; delta *= 2) {
    const T before = lanes_before<step, reverse>(x, delta);
    if (position >= delta) x = combine(before, x);
  }
  return x;
}

// x of the previous lane of such lanes in scan order; `none` in the first.
template <int lanes, int step, bool reverse = false, class T>
__device__ inline T lane_before(T x, T none) {
  const T before = lanes_before<step, reverse>(x, 1);
  return scan_position<lanes, step, reverse>() > 0 ? before : none;
}

// x of the last of such lanes.
template <int lanes, int step, bool reverse = false, class T>
__device__ inline T last_lane(T x) {
  return shuffle(x, reverse ? lane_index() & ~((lanes - 1) * step) : lane_index() | (lanes - 1) * step);
}

// Exclusive scan at position `number` of 32, of which each lane holds the inclusive scan at its own; `none` at the
// first.
template <class T>
__device__ inline T scanned_before(T through, int number, T none) {
  const T before = shuffle(through, (number + 31) % 32);
  return number > 0 ? before : none;
}
