// Stream-K: all CTAs of a launch share the k-iterations of all output tiles. This is the current position of a CTA in
// its part: a tile, and the first and the number of its k-iterations. Tiles are grouped into columns of `lockstep_rows`
// tiles, which as many CTAs process in lockstep, each in a row of its own. The part ends before k-iteration `rest` of
// column `last`.
struct WorkRange {
  u32 block;
  int first, k_iterations;
  int column, last, rest;
};

// Number of parts in a launch. The CTAs that are dispatched last process the first part.
__device__ inline int parts_of(int lockstep_rows) { return static_cast<int>(grid_size()) / lockstep_rows; }

// First k-iteration of a part, counted column by column. Parts have nearly the same length. A tile is not split within
// a few k-iterations of its start or end, because adding the accumulators of two CTAs takes longer than these.
__device__ inline int start_of_part(u32 blocks, int k_iterations, int lockstep_rows, int part) {
  constexpr int few = 4;
  const int columns = (static_cast<int>(blocks) + lockstep_rows - 1) / lockstep_rows;
  const int at = columns * k_iterations * part / parts_of(lockstep_rows), k_iteration = at % k_iterations;
  return k_iteration < few ? at - k_iteration : k_iterations - k_iteration < few ? at + k_iterations - k_iteration : at;
}

// Sets the tile and its k-iterations: those of the current column that are in the part.
__device__ inline void set_span(WorkRange& span, u32 blocks, int k_iterations, int lockstep_rows) {
  span.block = static_cast<u32>(span.column * lockstep_rows) + block_index() % static_cast<u32>(lockstep_rows);
  const int end = span.column < span.last ? k_iterations : span.column == span.last ? span.rest : 0;
  span.k_iterations = span.block < blocks ? end - span.first : 0;
}

// The start of this CTA's part.
__device__ inline WorkRange first_span(u32 blocks, int k_iterations, int lockstep_rows) {
  const int part = parts_of(lockstep_rows) - 1 - static_cast<int>(block_index()) / lockstep_rows;
  const int start = start_of_part(blocks, k_iterations, lockstep_rows, part);
  const int end = start_of_part(blocks, k_iterations, lockstep_rows, part + 1);
  WorkRange span = {0, start % k_iterations, 0, start / k_iterations, end / k_iterations, end % k_iterations};
  set_span(span, blocks, k_iterations, lockstep_rows);
  return span;
}

// Advances to the next column.
__device__ inline void next_span(WorkRange& span, u32 blocks, int k_iterations, int lockstep_rows) {
  ++span.column;
  span.first = 0;
  set_span(span, blocks, k_iterations, lockstep_rows);
}

// Iterates over the CTAs that process the later k-iterations of a tile, in ascending order of k. `left` is the number
// of k-iterations of the current CTA and those after it.
struct Peers {
  u32 block;
  int part, end, left;
};

// Advances to the next CTA. (No part is empty: each is longer than the few k-iterations within which no tile is split.)
__device__ inline void next_of(Peers& others, u32 blocks, int k_iterations, int lockstep_rows) {
  others.left = others.end - start_of_part(blocks, k_iterations, lockstep_rows, ++others.part);
  others.block = static_cast<u32>((parts_of(lockstep_rows) - 1 - others.part) * lockstep_rows) +
                 block_index() % static_cast<u32>(lockstep_rows);
}

// The peers for a span that begins with the first k-iteration of its tile.
__device__ inline Peers peers_of(const WorkRange& span, u32 blocks, int k_iterations, int lockstep_rows) {
  const int part = parts_of(lockstep_rows) - 1 - static_cast<int>(block_index()) / lockstep_rows;
  Peers others = {0, part, (span.column + 1) * k_iterations, 0};
  if (span.k_iterations < k_iterations) next_of(others, blocks, k_iterations, lockstep_rows);
  return others;
}

// The address in another CTA's workspace that corresponds to `own` in this CTA's; a workspace has `bytes` bytes.
__device__ inline const float* of_block(const float* own, i64 bytes, u32 block) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(own) +
                                        (static_cast<i64>(block) - static_cast<i64>(block_index())) * bytes);
}

// Adds a thread's partial accumulators that another CTA has stored.
template <int threads, int count>
__device__ inline void add_part(float (&sums)[count], const float* part, int thread) {
  constexpr int some = count % 16 ? 8 : count % 32 ? 16 : 32;  // loads in flight
#pragma unroll
  for (int first = 0; first < count; first += some) {
    float others[some];
#pragma unroll
    for (int i = 0; i < some; i += 4) load_partial(others + i, part + (first + i) * threads + thread * 4);
#pragma unroll
    for (int i = 0; i < some; ++i) sums[first + i] += others[i];
  }
}
