// Positions along an axis of a tile that are inside the tensor: [low, high).
struct Window {
  int low, high;
};

// Window of a tile of `tile` positions that starts at `start` along an axis of `extent`.
__device__ inline Window window(i64 start, int tile, i64 extent) {
  const i64 low = start < 0 ? -start : 0, high = extent - start;
  return {low < tile ? static_cast<int>(low) : tile, high < tile ? (high > 0 ? static_cast<int>(high) : 0) : tile};
}

// The same for positions that are `step` apart, ascending or descending.
__device__ inline Window stepped_window(i64 start, i64 step, int tile, i64 extent) {
  i64 low = 0, high = 0;
  if (step > 0) {
    if (start < 0) low = (step - 1 - start) / step;
    if (start < extent) high = (extent - start + step - 1) / step;
  } else {
    if (start >= extent) low = (start - extent) / -step + 1;
    if (start >= 0) high = start / -step + 1;
  }
  return {low < tile ? static_cast<int>(low) : tile, high < tile ? static_cast<int>(high) : tile};
}

// Intersection of two windows.
__device__ inline Window both(Window a, Window b) {
  return {maximum(a.low, b.low), minimum(a.high, b.high)};
}

// Returns true if a position is in the window.
__device__ inline bool within(Window w, int position) { return position >= w.low && position < w.high; }

// Loads N neighboring elements; the padding if not `inside`.
template <int N, class T, class H>
__device__ inline void read_vector(H* out, const T* from, bool inside, H padding) {
  if (inside)
    load_vector<N>(out, from);
  else
    for (int i = 0; i < N; ++i) out[i] = padding;
}

// An axis lowers the lowest offset of a tensor's elements by its reach if the stride is negative.
__device__ inline i64 reach_below(i64 reach) { return reach < 0 ? reach : 0; }

// An axis raises the highest offset by its reach if the stride is positive.
__device__ inline i64 reach_above(i64 reach) { return reach > 0 ? reach : 0; }

// Checks that `count` elements from `offset` on are in their tensor; for kernels built with TESSERA_DEBUG.
__device__ inline void check_offset(i64 offset, int count, i64 low, i64 high, int line) {
  if (offset < low || offset + count - 1 > high) debug_fail("an element outside of its tensor is used", line);
}

// Checks that a stored value is not NaN; for kernels built with TESSERA_DEBUG.
template <class H>
__device__ inline void check_number(H x, int line) {
  if (x != x) debug_fail("NaN is stored", line);
}

// The same for N neighboring values.
template <int N, class H>
__device__ inline void check_numbers(const H* x, int line) {
  for (int i = 0; i < N; ++i) check_number(x[i], line);
}

// Position of a tile in a grid of rows x columns with `group` rows in raster order: tiles that run at about the same
// time share operands in L2.
struct GridPlace {
  int row, column;
};

// Index of this CTA's tile in a wave of as many tiles as there are CTAs. Every other wave is reversed, so that all CTAs
// get as many early tiles as late ones.
template <class Number>
__device__ inline Number snake_order(Number wave) {
  return wave + (wave / grid_size() % 2 == 0 ? block_index() : grid_size() - 1 - block_index());
}

// Raster order: column by column within a group of rows.
template <class Number>
__device__ inline GridPlace grouped(Number block, int rows, int columns, int group) {
  const Number in_group = static_cast<Number>(minimum(rows, group)) * columns;
  const int first = static_cast<int>(block / in_group) * group;
  const int height = minimum(rows - first, group);
  const Number rest = block % in_group;
  return {first + static_cast<int>(rest % height), static_cast<int>(rest / height)};
}

// Byte offset of a 16-byte chunk in a tile with `chunks` chunks a row. Chunks are permuted by row so that eight rows of
// a column are in different banks.
template <int chunks>
__device__ inline int swizzled(int row, int chunk) {
  constexpr int lowest = chunks & -chunks, period = lowest < 8 ? lowest : 8;
  return (row * chunks + (chunk ^ (row / (8 / period) & (period - 1)))) * 16;
}

// Byte offset of an element of such a tile.
template <class T, int chunks>
__device__ inline int element_offset(int row, int column) {
  constexpr int per_chunk = 16 / static_cast<int>(sizeof(T));
  return swizzled<chunks>(row, column / per_chunk) + column % per_chunk * static_cast<int>(sizeof(T));
}

// Loads N neighboring elements of a row of such a tile.
template <int N, class T, int chunks, class H>
__device__ inline void read_tile(H* out, const char* tile, int row, int column) {
  load_vector<N>(out, reinterpret_cast<const T*>(tile + element_offset<T, chunks>(row, column)));
}

// Exchanges words between lanes that differ in bit `step`: the lower lane keeps `low` and gets the other's `low` as
// `high`; the upper lane keeps `high` and gets the other's `high` as `low`.
__device__ inline void exchange_words(u32& low, u32& high, int step) {
  const bool upper = lane_index() & step;
  const u32 taken = shuffle_xor(upper ? low : high, step);
  if (upper)
    low = taken;
  else
    high = taken;
}

// Transposes a 4 x 4 matrix across four consecutive lanes: word i of lane q becomes word q of lane i.
__device__ inline void exchange_quads(u32* words) {
  exchange_words(words[0], words[1], 1);
  exchange_words(words[2], words[3], 1);
  exchange_words(words[0], words[2], 2);
  exchange_words(words[1], words[3], 2);
}

// The elements of words that ldmatrix transposed: bytes 0 and 2 of a word are neighbors at one position, bytes 1 and 3
// at the next.
template <class T, int words, class H>
__device__ inline void unpack_pairs(H* out, const u32* pairs) {
  for (int i = 0; i < words; ++i) {
    const u32 word = select_bytes(pairs[i], 0, 0x3120);
    load_vector<4>(out + 4 * i, reinterpret_cast<const T*>(&word));
  }
}

// A word of 8-bit integers, of signed ones with 128 added to each.
template <class T>
__device__ inline u32 without_signs(T, u32 word) {
  return T(-1) < T(0) ? word ^ 0x80808080u : word;
}

// An element of such a word as a float: its byte behind the exponent of 2^23, which is subtracted.
template <class T>
__device__ inline float byte_to_real(T, u32 word, int byte) {
  return float_of(select_bytes(word, 0x4b000000u, 0x7440u + byte)) - (T(-1) < T(0) ? 8388736.0f : 8388608.0f);
}

// Like unpack_pairs, with 8-bit integers as floats.
template <class T, int words>
__device__ inline void unpack_real_pairs(float* out, const u32* pairs) {
  for (int i = 0; i < words; ++i) {
    const u32 word = without_signs(T{}, pairs[i]);
    for (int j = 0; j < 4; ++j) out[4 * i + j] = byte_to_real(T{}, word, j % 2 * 2 + j / 2);
  }
}

// Loads two neighboring 8-bit integers as floats.
template <int N, class T>
__device__ inline void load_reals(float* out, const T* from) {
  static_assert(N == 2);
  const u32 word = without_signs(T{}, *reinterpret_cast<const u16*>(from));
  for (int j = 0; j < 2; ++j) out[j] = byte_to_real(T{}, word, j);
}

// Zeroes a tile of `chunks` 16-byte chunks.
template <int threads>
__device__ inline void clear_tile(char* tile, int chunks) {
  for (int i = thread_index(); i < 4 * chunks; i += threads) reinterpret_cast<u32*>(tile)[i] = 0;
}

// Address of a lane's row for ldmatrix (load_matrix_x4) of the left operand of mma.sync: 16 rows from `row` on, 32
// bytes of k from chunk `chunk` on. The tile's rows run along k. Rows that are a multiple of eight apart differ in
// address by the length of so many rows.
template <int chunks>
__device__ inline const char* left_row(const char* tile, int row, int chunk) {
  const int lane = lane_index();
  return tile + swizzled<chunks>(row + lane % 16, chunk + lane / 16);
}

// The same for a tile whose rows run along m: 16 rows of k, 32 bytes of m from chunk `chunk` on.
template <int chunks>
__device__ inline const char* left_row_transposed(const char* tile, int chunk) {
  const int lane = lane_index();
  return tile + swizzled<chunks>(lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2);
}

// The same for the right operands of two adjacent mma.sync: 16 rows of n from `row` on, 32 bytes of k. The tile's rows
// run along k. For one mma.sync, lanes 0 to 15 address 8 rows.
template <int chunks>
__device__ inline const char* right_row(const char* tile, int row, int chunk) {
  const int lane = lane_index();
  return tile + swizzled<chunks>(row + lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2);
}

// The same for a tile whose rows run along n: 16 rows of k, 32 bytes of n from chunk `chunk` on; 16 bytes for one
// mma.sync.
template <int chunks>
__device__ inline const char* right_row_transposed(const char* tile, int chunk) {
  const int lane = lane_index();
  return tile + swizzled<chunks>(lane % 16, chunk + lane / 16);
}

// Address of a lane's row in a tile of 8-bit elements whose rows run along m or n: 32 rows of k, 16 bytes from chunk
// `chunk` on. Rows 2 q and 2 q + 1 of a matrix are k from 4 q on, and those of the next matrix are the two after these;
// for q = 2 and 3 the two matrices are swapped, so that eight rows are in different banks.
template <int chunks>
__device__ inline const char* bytes_row_transposed(const char* tile, int chunk) {
  const int lane = lane_index(), row = lane % 8;
  return tile + swizzled<chunks>(lane / 16 * 16 + row / 2 * 4 + (row / 4 + lane / 8) % 2 * 2 + row % 2, chunk);
}

// Loads an 8-bit operand of mma.sync from these rows. A lane gets four bytes along k from 4 (lane % 4) on and four from
// 16 further on, at position 2 (lane / 4) across k and at the next one: out[0] and out[3 - next] for the first
// position, out[next] and out[3] for the next.
template <int chunks, int next>
__device__ inline void load_bytes_transposed(u32* out, const char* tile, int chunk) {
  u32 pairs[4];
  load_matrix_x4_transposed(pairs, bytes_row_transposed<chunks>(tile, chunk));
  const u32 first = lane_index() % 4 < 2 ? 0x6420 : 0x2064, second = first + 0x1111;
  out[0] = select_bytes(pairs[0], pairs[1], first);
  out[next] = select_bytes(pairs[0], pairs[1], second);
  out[3 - next] = select_bytes(pairs[2], pairs[3], first);
  out[3] = select_bytes(pairs[2], pairs[3], second);
}
