// Pipeline state: the next stage and its phase parity.
struct PipelineState {
  int stage;
  u32 phase;
};

// Initializes the mbarriers of a pipeline, each with the number of arrivals that complete its phase.
template <int stages>
__device__ inline void init_pipeline(u64* full, int full_arrivals, u64* empty, int empty_arrivals) {
  for (int stage = 0; stage < stages; ++stage) {
    barrier_init(full + stage, full_arrivals);
    barrier_init(empty + stage, empty_arrivals);
  }
}

// Advances by `count` stages in a pipeline of `stages`.
template <int stages>
__device__ inline void advance(PipelineState& at, int count) {
  const int next = at.stage + count;
  at.phase ^= static_cast<u32>(next / stages) & 1;
  at.stage = next % stages;
}

// Takes one of `left`; returns false if none is left.
__device__ inline bool take_one(int& left) {
  if (left == 0) return false;
  --left;
  return true;
}

// The stage that is `behind` stages before the next one.
template <int stages>
__device__ inline int stage_behind(const PipelineState& at, int behind) {
  return (at.stage + stages - behind) % stages;
}

// Zero-fills the rows from `filled` on of panels with `rows` rows of 128 bytes each.
template <int rows, int threads>
__device__ inline void clear_rest(char* first, int panels, int filled, int thread) {
  const int chunks = (rows - filled) * 8;
  if (chunks <= 0) return;
  // Unrolled, it needs more registers than a GELU beside 128 accumulators leaves.
#pragma unroll 1
  for (int panel = 0; panel < panels; ++panel)
#pragma unroll 1
    for (int i = thread; i < chunks; i += threads)
      *reinterpret_cast<Vector<u32, 4>*>(first + (panel * rows + filled) * 128 + i * 16) = {};
}

// TMA descriptor (tensor map), encoded by the host at launch.
struct alignas(64) TensorMap {
  u64 words[16];
};

// A coordinate for TMA, in 32 bits. A value that does not fit is outside of any tensor, and so is the lowest one, which
// is used for it.
__device__ inline int box_coordinate(i64 at) {
  const int low = static_cast<int>(at);
  return low == at ? low : -2147483647 - 1;
}

// TMA store to the box of a tensor at the given coordinates. A TMA store takes no negative coordinates (CUDA C++
// Programming Guide, "Using TMA to transfer multi-dimensional arrays"); a tile there is outside of the tensor.
template <class... Places>
__device__ inline void tma_store_guarded(const TensorMap* map, const void* from_shared, Places... at) {
  if (((at >= 0) && ...)) tma_store(map, from_shared, at...);
}

// wgmma matrix descriptor of a tile in shared memory: panels with the 128-byte swizzle, `leading` and `stride` in units
// of 16 bytes (PTX ISA, "Matrix Descriptor Format").
template <int leading, int stride>
__device__ inline u64 matrix_descriptor(const void* tile) {
  return (shared_address(tile) & 0x3ffff) >> 4 | static_cast<u64>(leading) << 16 | static_cast<u64>(stride) << 32 |
         static_cast<u64>(1) << 62;
}

// Byte offset of a 16-byte chunk in a panel of 128-byte rows; chunks are permuted by row.
__device__ inline int panel_offset(int row, int chunk) { return row * 128 + (chunk ^ (row % 8)) * 16; }

// Byte offset of an element in panels of `rows` rows each, side by side.
template <class T, int rows>
__device__ inline int panels_offset(int row, int column) {
  constexpr int size = sizeof(T), per_panel = 128 / size, per_chunk = 16 / size;
  const int panel = column / per_panel, chunk = column % per_panel / per_chunk;
  return panel * rows * 128 + panel_offset(row, chunk) + column % per_chunk * size;
}

// Address of an element of such panels, `row` rows and `column` columns from a thread's first element at byte `first`.
// The two offsets have no bits in common, so the swizzle is the exclusive or of both permutations.
template <class T, int rows>
__device__ inline const T* panels_element(const char* panels, int first, int row, int column) {
  constexpr int size = sizeof(T), per_panel = 128 / size, per_chunk = 16 / size;
  const int chunk = (column % per_panel / per_chunk) ^ (row % 8);
  return reinterpret_cast<const T*>(panels + (first ^ chunk * 16) + column / per_panel * rows * 128 + row * 128 +
                                    column % per_chunk * size);
}
