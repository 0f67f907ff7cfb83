// Maps a float to an unsigned integer with the same order. Every NaN is last, and -0 is before +0.
__device__ inline u32 ordered_bits(float x) {
  const u32 bits = bits_of(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// The same for f64.
__device__ inline u64 ordered_bits(double x) {
  const u64 bits = bits_of(x);
  if ((bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull) return ~u64(0);
  return (bits & 0x8000000000000000ull) != 0 ? ~bits : bits | 0x8000000000000000ull;
}

// Maps an i32 to an unsigned integer with the same order.
__device__ inline u32 ordered_bits(int x) { return static_cast<u32>(x) ^ 0x80000000u; }

// A u32 is its own key.
__device__ inline u32 ordered_bits(u32 x) { return x; }

// Maps an i64 to an unsigned integer with the same order.
__device__ inline u64 ordered_bits(i64 x) { return static_cast<u64>(x) ^ 0x8000000000000000u; }

// A u64 is its own key.
__device__ inline u64 ordered_bits(u64 x) { return x; }

// Inverse of ordered_bits for f32.
__device__ inline void from_ordered_bits(u32 bits, float& x) {
  x = float_of((bits & 0x80000000u) != 0 ? bits & 0x7fffffffu : ~bits);
}

// Inverse of ordered_bits for f64.
__device__ inline void from_ordered_bits(u64 bits, double& x) {
  x = double_of(static_cast<i64>((bits & 0x8000000000000000ull) != 0 ? bits & 0x7fffffffffffffffull : ~bits));
}

// Inverse of ordered_bits for i32.
__device__ inline void from_ordered_bits(u32 bits, int& x) { x = static_cast<int>(bits ^ 0x80000000u); }

// Inverse of ordered_bits for u32.
__device__ inline void from_ordered_bits(u32 bits, u32& x) { x = bits; }

// Inverse of ordered_bits for i64.
__device__ inline void from_ordered_bits(u64 bits, i64& x) { x = static_cast<i64>(bits ^ 0x8000000000000000u); }

// Inverse of ordered_bits for u64.
__device__ inline void from_ordered_bits(u64 bits, u64& x) { x = bits; }

// Returns true if x is -0, which no integer is.
template <class T>
__device__ inline bool is_negative_zero(T) {
  return false;
}

// Returns true if x is -0, which a placed key distinguishes from +0.
__device__ inline bool is_negative_zero(float x) { return bits_of(x) == 0x80000000u; }

// The same for f64.
__device__ inline bool is_negative_zero(double x) { return bits_of(x) == 0x8000000000000000ull; }

// Sort key of an element: the lowest key goes first.
template <bool descending, class T>
__device__ inline auto key_of(T x) {
  const auto bits = ordered_bits(x);
  return descending ? ~bits : bits;
}

// The element with this key.
template <class T, bool descending, class Key>
__device__ inline T key_value(Key key) {
  T x;
  from_ordered_bits(descending ? ~key : key, x);
  return x;
}

// Sort key of an element and its index: among equal elements, which -0 and +0 are, the lowest index goes first. The bit
// below the index records whether the element was -0.
template <bool descending, class T>
__device__ inline auto placed_key(T x, int at) {
  const bool negative = is_negative_zero(x);
  const auto key = key_of<descending>(negative ? T(0) : x);
  const u32 place = static_cast<u32>(at) * 2 + (negative ? 1 : 0);
  if constexpr (sizeof(T) == 4)
    return static_cast<u64>(key) << 32 | place;
  else
    return PlacedKey{key, place};
}

// The index of a placed key, and below it the bit that records -0.
__device__ inline u32 place_bits(u64 key) { return static_cast<u32>(key); }

// The same for 64-bit elements.
__device__ inline u32 place_bits(PlacedKey key) { return key.place; }

// The index of the element before sorting.
template <class Key>
__device__ inline int key_place(Key key) {
  return static_cast<int>(place_bits(key) >> 1);
}

// Restores the sign of a zero; integers have only one zero.
template <class T>
__device__ inline T with_sign_of_zero(T x, bool) {
  return x;
}

// Restores the sign of a zero in f32.
__device__ inline float with_sign_of_zero(float x, bool negative) { return negative ? -0.0f : x; }

// Restores the sign of a zero in f64.
__device__ inline double with_sign_of_zero(double x, bool negative) { return negative ? -0.0 : x; }

// The element of a placed key.
template <class T, bool descending>
__device__ inline T placed_value(u64 key) {
  return with_sign_of_zero(key_value<T, descending>(static_cast<u32>(key >> 32)), (place_bits(key) & 1) != 0);
}

// The same for 64-bit elements.
template <class T, bool descending>
__device__ inline T placed_value(PlacedKey key) {
  return with_sign_of_zero(key_value<T, descending>(key.key), (place_bits(key) & 1) != 0);
}

// The key of padding, which goes after all elements.
template <class Key>
__device__ inline Key last_key() {
  if constexpr (sizeof(Key) > 8)
    return Key{~u64(0), ~u32(0)};
  else
    return ~Key(0);
}

// Returns true if key a goes before key b.
template <class Key>
__device__ inline bool goes_before(Key a, Key b) {
  return a < b;
}

// The same for placed keys of 64-bit elements.
__device__ inline bool goes_before(PlacedKey a, PlacedKey b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

// The key of lane `lane_index() ^ mask`.
template <class Key>
__device__ inline Key key_across(Key key, int mask) {
  return shuffle_xor(key, mask);
}

// The same for placed keys of 64-bit elements.
__device__ inline PlacedKey key_across(PlacedKey key, int mask) {
  return PlacedKey{shuffle_xor(key.key, mask), shuffle_xor(key.place, mask)};
}

// The key that goes first of this lane's and another lane's if `first`, else the one that goes last.
template <class Key>
__device__ inline Key kept_key(Key own, Key other, bool first) {
  return select(goes_before(other, own) == first, other, own);
}

// A compare-exchange pass of the network below among a lane's own keys, between indices that differ by exclusive or
// with `mask`, whose highest bit is `top`. Only the first `kept` of each `size` keys take part.
template <int mask, int top, int size, int kept, int count, class Key>
__device__ inline void sort_pass(Key (&keys)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if ((i & top) != 0 || i % size >= kept) continue;
    const Key low = keys[i], high = keys[i ^ mask];
    const bool swap = goes_before(high, low);
    keys[i] = select(swap, high, low);
    keys[i ^ mask] = select(swap, low, high);
  }
}

// Such passes at distances `top`, `top` / 2, ..., 1.
template <int top, int size, int kept, int count, class Key>
__device__ inline void sort_passes(Key (&keys)[count]) {
  if constexpr (top > 0) {
    sort_pass<top, top, size, kept>(keys);
    sort_passes<top / 2, size, kept>(keys);
  }
}

// A compare-exchange pass between lanes that differ by exclusive or with `lanes`; `first` if this lane gets the keys
// that go first. Key i, below `kept`, is compared with key i ^ mask of the other lane.
template <int mask, int kept, int count, class Key>
__device__ inline void sort_across(Key (&keys)[count], int lanes, bool first) {
#pragma unroll
  for (int i = 0; i < kept; ++i) {
    const int j = i ^ mask;
    if (i > j) continue;
    const Key low = keys[i], high = keys[j];
    keys[i] = kept_key(low, key_across(high, lanes), first);
    if (i != j) keys[j] = kept_key(high, key_across(low, lanes), first);
  }
}

// Sorts a lane's own keys, by merging sorted halves of runs of `size`, then of twice as many.
template <int kept, int size, int count, class Key>
__device__ inline void sort_registers(Key (&keys)[count]) {
  if constexpr (size <= count) {
    constexpr int half = size / 2, merged = kept < half ? kept : half, left = kept < size ? kept : size;
    sort_pass<half | (merged - 1), half, size, merged>(keys);
    sort_passes<merged / 2, size, left>(keys);
    sort_registers<kept, size * 2>(keys);
  }
}

// Sorts the keys of a line, `count` in each of `lanes` lanes that are `unit` apart; the first `kept`, a power of two,
// are valid. This is a bitonic network with a stage for each power of two. Both halves of a stage's keys are sorted.
// Its first pass compares each key with the one at the same distance from the other end, and moves those that go first
// to the lower half. If halves hold more keys than are kept, the first `kept` of both suffice. The stages across lanes
// form a loop, as their passes are alike.
template <int lanes, int unit, int kept, int count, class Key>
__device__ inline void sort_lanes(Key (&keys)[count]) {
  constexpr int own = kept < count ? kept : count, most = kept / own;  // most: number of lanes with keys that are kept
  sort_registers<kept, 2>(keys);
#pragma unroll 1
  for (int half = 1; half < lanes; half *= 2) {
    const int merged = half < most ? half : most;
    sort_across<own - 1, own>(keys, (half | (merged - 1)) * unit, (lane_index() & half * unit) == 0);
#pragma unroll 1
    for (int step = merged / 2; step > 0; step /= 2)
      sort_across<0, own>(keys, step * unit, (lane_index() & step * unit) == 0);
    sort_passes<own / 2, count, own>(keys);
  }
}

// The key that compares an element with other chunks of its line; the same order as within its chunk.
template <bool descending, bool placed, class T>
__device__ inline auto merge_key(T x) {
  return key_of<descending>(placed && is_negative_zero(x) ? T(0) : x);
}

// Number of elements, of `count` sorted ones, that go before a key; with `ties`, equal ones are counted as well.
template <bool descending, bool placed, class T, class Key>
__device__ inline int count_before(const T* line, int count, Key key, bool ties) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    const Key other = merge_key<descending, placed>(line[middle]);
    if (other < key || (ties && other == key))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Rank in its line of the element at position `place` of the sorted chunks: the elements before it in its chunk, and
// those of other chunks that go before it. In each chunk only the first `kept` are sorted, and only these are searched.
template <bool descending, bool placed, class T>
__device__ inline int rank_in_line(const T* line, int extent, int chunk, int kept, int place, T x) {
  const auto key = merge_key<descending, placed>(x);
  int rank = place % chunk;
  for (int first = 0; first < extent; first += chunk) {
    if (place / chunk * chunk == first) continue;
    const int left = extent - first;
    rank += count_before<descending, placed>(line + first, left < kept ? left : kept, key, first < place);
  }
  return rank;
}

// Sum of adjacent copies of a count. Lanes start at different copies.
template <int copies>
__device__ inline int sum_of_copies(const int* counts) {
  int sum = 0;
#pragma unroll
  for (int copy = 0; copy < copies; ++copy) sum += counts[(copy + lane_index()) % copies];
  return sum;
}
