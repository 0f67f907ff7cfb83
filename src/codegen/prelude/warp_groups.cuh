// A place in a pipeline of stages: which stage is next, and the parity of its phase.
struct PipelineState {
  int stage;
  u32 phase;
};

// Goes on by `count` stages, of a pipeline of `stages`.
template <int stages>
__device__ inline void advance(PipelineState& at, int count) {
  const int next = at.stage + count;
  at.phase ^= static_cast<u32>(next / stages) & 1;
  at.stage = next % stages;
}

// Takes one of so many; false: there is none left.
__device__ inline bool take_one(int& left) {
  if (left == 0) return false;
  --left;
  return true;
}

// The stage `behind` the next one.
template <int stages>
__device__ inline int stage_behind(const PipelineState& at, int behind) {
  return (at.stage + stages - behind) % stages;
}

// Zeros in panels of so many rows of 128 bytes each, from row `filled` on.
template <int rows, int threads>
__device__ inline void clear_rest(char* first, int panels, int filled, int thread) {
  const int chunks = (rows - filled) * 8;
  if (chunks <= 0) return;
  // Unrolled, it takes registers that a GELU beside 128 sums has not.
#pragma unroll 1
  for (int panel = 0; panel < panels; ++panel)
#pragma unroll 1
    for (int i = thread; i < chunks; i += threads)
      *reinterpret_cast<Vector<u32, 4>*>(first + (panel * rows + filled) * 128 + i * 16) = {};
}

// A tensor as the copy engine knows it, encoded by the launch.
struct alignas(64) TensorMap {
  u64 words[16];
};

// A place as the copy engine counts it, in 32 bits. What these do not hold is outside of any tensor, as the lowest is.
__device__ inline int box_coordinate(i64 at) {
  const int low = static_cast<int>(at);
  return low == at ? low : -2147483647 - 1;
}

// Copies from shared memory to the box of a tensor at a place. Of a store the copy engine takes no place before the
// tensor (CUDA C++ Programming Guide, "Using TMA to transfer multi-dimensional arrays"); a tile there is outside of it.
template <class... Places>
__device__ inline void tma_store_guarded(const TensorMap* map, const void* from_shared, Places... at) {
  if (((at >= 0) && ...)) tma_store(map, from_shared, at...);
}

// Where a matrix lies in shared memory, for wgmma: panels with the swizzle of 128 bytes, `leading` and `stride` in
// units of 16 bytes (PTX ISA, "Matrix Descriptor Format").
template <int leading, int stride>
__device__ inline u64 matrix_descriptor(const void* tile) {
  return (shared_address(tile) & 0x3ffff) >> 4 | static_cast<u64>(leading) << 16 | static_cast<u64>(stride) << 32 |
         static_cast<u64>(1) << 62;
}

// Byte offset of a chunk of 16 bytes in a panel of rows of 128, whose chunks are permuted from row to row.
__device__ inline int panel_offset(int row, int chunk) { return row * 128 + (chunk ^ (row % 8)) * 16; }

// Byte offset of an element in panels of so many rows, side by side.
template <class T, int rows>
__device__ inline int panels_offset(int row, int column) {
  constexpr int size = sizeof(T), per_panel = 128 / size, per_chunk = 16 / size;
  const int panel = column / per_panel, chunk = column % per_panel / per_chunk;
  return panel * rows * 128 + panel_offset(row, chunk) + column % per_chunk * size;
}

// An element of such panels, `row` rows and `column` columns on from a thread's first at byte `first`, with no bit of
// these in the thread's: then the permutation is that of the thread and that of the rest, together by exclusive or.
template <class T, int rows>
__device__ inline const T* panels_element(const char* panels, int first, int row, int column) {
  constexpr int size = sizeof(T), per_panel = 128 / size, per_chunk = 16 / size;
  const int chunk = (column % per_panel / per_chunk) ^ (row % 8);
  return reinterpret_cast<const T*>(panels + (first ^ chunk * 16) + column / per_panel * rows * 128 + row * 128 +
                                    column % per_chunk * size);
}
