// A real as an integer of the same order; every NaN is the last, and -0 is before +0.
__device__ inline u32 ordered_bits(float x) {
  const u32 bits = bits_of(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// A real of 64 bits likewise.
__device__ inline u64 ordered_bits(double x) {
  const u64 bits = bits_of(x);
  if ((bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull) return ~u64(0);
  return (bits & 0x8000000000000000ull) != 0 ? ~bits : bits | 0x8000000000000000ull;
}

// An i32 as an unsigned integer of the same order.
__device__ inline u32 ordered_bits(int x) { return static_cast<u32>(x) ^ 0x80000000u; }

// A u32 has its own order.
__device__ inline u32 ordered_bits(u32 x) { return x; }

// An i64 as an unsigned integer of the same order.
__device__ inline u64 ordered_bits(i64 x) { return static_cast<u64>(x) ^ 0x8000000000000000u; }

// A u64 has its own order.
__device__ inline u64 ordered_bits(u64 x) { return x; }

// The real of such bits.
__device__ inline void from_ordered_bits(u32 bits, float& x) {
  x = float_of((bits & 0x80000000u) != 0 ? bits & 0x7fffffffu : ~bits);
}

// The real of 64 such bits.
__device__ inline void from_ordered_bits(u64 bits, double& x) {
  x = double_of(static_cast<i64>((bits & 0x8000000000000000ull) != 0 ? bits & 0x7fffffffffffffffull : ~bits));
}

// The i32 of such bits.
__device__ inline void from_ordered_bits(u32 bits, int& x) { x = static_cast<int>(bits ^ 0x80000000u); }

// The u32 of such bits.
__device__ inline void from_ordered_bits(u32 bits, u32& x) { x = bits; }

// The i64 of such bits.
__device__ inline void from_ordered_bits(u64 bits, i64& x) { x = static_cast<i64>(bits ^ 0x8000000000000000u); }

// The u64 of such bits.
__device__ inline void from_ordered_bits(u64 bits, u64& x) { x = bits; }

// Is it -0? No integer is.
template <class T>
__device__ inline bool is_negative_zero(T) {
  return false;
}

// Is it -0, which a place keeps apart from +0?
__device__ inline bool is_negative_zero(float x) { return bits_of(x) == 0x80000000u; }

// Is a real of 64 bits -0?
__device__ inline bool is_negative_zero(double x) { return bits_of(x) == 0x8000000000000000ull; }

// What an element is compared by: the lowest goes first.
template <bool descending, class T>
__device__ inline auto key_of(T x) {
  const auto bits = ordered_bits(x);
  return descending ? ~bits : bits;
}

// The element of such a key.
template <class T, bool descending, class Key>
__device__ inline T key_value(Key key) {
  T x;
  from_ordered_bits(descending ? ~key : key, x);
  return x;
}

// What an element is compared by with its place: the lowest place goes first among equals, which -0 and +0 are. Whether
// it was -0 stands below the place.
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

// The place of such a key, and below it whether it was -0.
__device__ inline u32 place_bits(u64 key) { return static_cast<u32>(key); }

// The same of elements of 64 bits.
__device__ inline u32 place_bits(PlacedKey key) { return key.place; }

// Where an element stood.
template <class Key>
__device__ inline int key_place(Key key) {
  return static_cast<int>(place_bits(key) >> 1);
}

// An element with the sign that a zero had; integers have one zero.
template <class T>
__device__ inline T with_sign_of_zero(T x, bool) {
  return x;
}

// A real with the sign that a zero had.
__device__ inline float with_sign_of_zero(float x, bool negative) { return negative ? -0.0f : x; }

// A real of 64 bits likewise.
__device__ inline double with_sign_of_zero(double x, bool negative) { return negative ? -0.0 : x; }

// The element of a key with a place.
template <class T, bool descending>
__device__ inline T placed_value(u64 key) {
  return with_sign_of_zero(key_value<T, descending>(static_cast<u32>(key >> 32)), (place_bits(key) & 1) != 0);
}

// The same of elements of 64 bits.
template <class T, bool descending>
__device__ inline T placed_value(PlacedKey key) {
  return with_sign_of_zero(key_value<T, descending>(key.key), (place_bits(key) & 1) != 0);
}

// What stands where there is no element goes behind all that do.
template <class Key>
__device__ inline Key last_key() {
  if constexpr (sizeof(Key) > 8)
    return Key{~u64(0), ~u32(0)};
  else
    return ~Key(0);
}

// Does a key go before another?
template <class Key>
__device__ inline bool goes_before(Key a, Key b) {
  return a < b;
}

// Does a key with a place?
__device__ inline bool goes_before(PlacedKey a, PlacedKey b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

// The key of the lane `lane_index() ^ mask`.
template <class Key>
__device__ inline Key key_across(Key key, int mask) {
  return shuffle_xor(key, mask);
}

// The same with a place.
__device__ inline PlacedKey key_across(PlacedKey key, int mask) {
  return PlacedKey{shuffle_xor(key.key, mask), shuffle_xor(key.place, mask)};
}

// Of a key and that of another lane the one that goes first, or the other one.
template <class Key>
__device__ inline Key kept_key(Key own, Key other, bool first) {
  return select(goes_before(other, own) == first, other, own);
}

// A pass of the network below, among a lane's own keys: those whose numbers differ by exclusive or with `mask`, the
// highest bit of which is `top`, are exchanged if they are not in order. Of each `size` keys the first `kept` count.
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

// Such passes over distances `top`, `top` / 2, ..., 1.
template <int top, int size, int kept, int count, class Key>
__device__ inline void sort_passes(Key (&keys)[count]) {
  if constexpr (top > 0) {
    sort_pass<top, top, size, kept>(keys);
    sort_passes<top / 2, size, kept>(keys);
  }
}

// A pass over lanes that differ by exclusive or with `lanes`, of which this one is the `first` or not: key i of `kept`
// meets key i ^ mask of the other one.
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

// A lane's own keys in order, from halves of `size` that are.
template <int kept, int size, int count, class Key>
__device__ inline void sort_registers(Key (&keys)[count]) {
  if constexpr (size <= count) {
    constexpr int half = size / 2, merged = kept < half ? kept : half, left = kept < size ? kept : size;
    sort_pass<half | (merged - 1), half, size, merged>(keys);
    sort_passes<merged / 2, size, left>(keys);
    sort_registers<kept, size * 2>(keys);
  }
}

// The keys of a line in order, `count` in each of `lanes` lanes, `unit` apart: the first `kept`, a power of two. A
// bitonic network, a stage for each power of two: of the keys of a stage both halves are in order; its first pass, in
// which each meets the one as far from the other end, brings those that go first to the lower half. Of halves that have
// more than are kept the first of both are enough. Stages over lanes are a loop, as their passes are alike.
template <int lanes, int unit, int kept, int count, class Key>
__device__ inline void sort_lanes(Key (&keys)[count]) {
  constexpr int own = kept < count ? kept : count, most = kept / own;  // most: lanes that have keys which are kept
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

// What an element is compared by with those of other chunks of its line: as in its own.
template <bool descending, bool placed, class T>
__device__ inline auto merge_key(T x) {
  return key_of<descending>(placed && is_negative_zero(x) ? T(0) : x);
}

// How many of `count` elements in order go before a key; with `ties` those that are equal, too.
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

// The place in its line of an element that stands at a place of its chunk: behind those before it, and those of other
// chunks that go before it. Of each chunk the first `kept` are in order, and no others are asked.
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

// The sum of copies that are neighbours, which each lane begins with another of.
template <int copies>
__device__ inline int sum_of_copies(const int* counts) {
  int sum = 0;
#pragma unroll
  for (int copy = 0; copy < copies; ++copy) sum += counts[(copy + lane_index()) % copies];
  return sum;
}
