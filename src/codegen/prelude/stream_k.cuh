// A block of threads on its way through its part of a launch's rounds, which all blocks share: a block of the grid, and
// rounds of it. Blocks of the grid stand in columns of as many as `abreast` blocks of threads walk through together,
// each in a lane of its own; the part ends ahead of round `rest` of column `last`.
struct WorkRange {
  u32 block;
  int first, k_iterations;
  int column, last, rest;
};

// Parts of a launch: that of the blocks of threads which are dispatched last is the first.
__device__ inline int parts_of(int lockstep_rows) { return static_cast<int>(grid_size()) / lockstep_rows; }

// Of all rounds, column by column, the first of a part. Parts are nearly of one length; no tile is cut a few rounds
// behind its first or ahead of its last, as to add up sums of two blocks takes longer than these.
__device__ inline int start_of_part(u32 blocks, int k_iterations, int lockstep_rows, int part) {
  constexpr int few = 4;
  const int columns = (static_cast<int>(blocks) + lockstep_rows - 1) / lockstep_rows;
  const int at = columns * k_iterations * part / parts_of(lockstep_rows), k_iteration = at % k_iterations;
  return k_iteration < few ? at - k_iteration : k_iterations - k_iteration < few ? at + k_iterations - k_iteration : at;
}

// What of the column at hand is in the part.
__device__ inline void set_span(WorkRange& span, u32 blocks, int k_iterations, int lockstep_rows) {
  span.block = static_cast<u32>(span.column * lockstep_rows) + block_index() % static_cast<u32>(lockstep_rows);
  const int end = span.column < span.last ? k_iterations : span.column == span.last ? span.rest : 0;
  span.k_iterations = span.block < blocks ? end - span.first : 0;
}

// Where the part of this block of threads begins.
__device__ inline WorkRange first_span(u32 blocks, int k_iterations, int lockstep_rows) {
  const int part = parts_of(lockstep_rows) - 1 - static_cast<int>(block_index()) / lockstep_rows;
  const int start = start_of_part(blocks, k_iterations, lockstep_rows, part);
  const int end = start_of_part(blocks, k_iterations, lockstep_rows, part + 1);
  WorkRange span = {0, start % k_iterations, 0, start / k_iterations, end / k_iterations, end % k_iterations};
  set_span(span, blocks, k_iterations, lockstep_rows);
  return span;
}

// Goes on to the next column.
__device__ inline void next_span(WorkRange& span, u32 blocks, int k_iterations, int lockstep_rows) {
  ++span.column;
  span.first = 0;
  set_span(span, blocks, k_iterations, lockstep_rows);
}

// Blocks of threads that have later rounds of a block of the grid, in the order of rounds: how many rounds are left for
// the one at hand and those behind it.
struct Peers {
  u32 block;
  int part, end, left;
};

// Goes on to the next. (No part is empty: each has more rounds than a tile may not be cut by.)
__device__ inline void next_of(Peers& others, u32 blocks, int k_iterations, int lockstep_rows) {
  others.left = others.end - start_of_part(blocks, k_iterations, lockstep_rows, ++others.part);
  others.block = static_cast<u32>((parts_of(lockstep_rows) - 1 - others.part) * lockstep_rows) +
                 block_index() % static_cast<u32>(lockstep_rows);
}

// Of a span that begins with the first round.
__device__ inline Peers peers_of(const WorkRange& span, u32 blocks, int k_iterations, int lockstep_rows) {
  const int part = parts_of(lockstep_rows) - 1 - static_cast<int>(block_index()) / lockstep_rows;
  Peers others = {0, part, (span.column + 1) * k_iterations, 0};
  if (span.k_iterations < k_iterations) next_of(others, blocks, k_iterations, lockstep_rows);
  return others;
}

// What another block of threads has in its workspace, of `bytes`, where this one has `own`.
__device__ inline const float* of_block(const float* own, i64 bytes, u32 block) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(own) +
                                        (static_cast<i64>(block) - static_cast<i64>(block_index())) * bytes);
}

// Adds a thread's sums that another block has put.
template <int threads, int count>
__device__ inline void add_part(float (&sums)[count], const float* part, int thread) {
  constexpr int some = count % 32 ? 16 : 32;  // under way at a time
#pragma unroll
  for (int first = 0; first < count; first += some) {
    float others[some];
#pragma unroll
    for (int i = 0; i < some; i += 4) load_partial(others + i, part + (first + i) * threads + thread * 4);
#pragma unroll
    for (int i = 0; i < some; ++i) sums[first + i] += others[i];
  }
}
