// Reports a failed check in the mailbox: its text and its index in the grid. If several fail, one of them is reported.
// (graph/reports.hpp)
__device__ inline void fail_check(u32* board, int text, i64 block) {
  if (atomicCAS(board, 0u, 1u) != 0) return;
  board[1] = text;
  board[2] = static_cast<u32>(block);
  board[3] = static_cast<u32>(block >> 32);
}

// Allocates a record of `words` words for a print in the mailbox; null if no space is left.
__device__ inline u32* new_record(u32* board, int text, i64 block, u32 words) {
  constexpr u32 header = 16, room = 1 << 18;
  const u32 length = words + 4;
  const u64 at = atomicAdd(reinterpret_cast<u64*>(board + 4), static_cast<u64>(length));
  if (at + length > room) {
    board[6] = 1;
    return nullptr;
  }
  u32* const record = board + header + at;
  record[0] = length;
  record[1] = text;
  record[2] = static_cast<u32>(block);
  record[3] = static_cast<u32>(block >> 32);
  return record + 4;
}

// Writes the elements of a printed value.
template <class T>
__device__ inline void record_elements(u32* to, const T* from, int count) {
  const u32* const words = reinterpret_cast<const u32*>(from);
  for (int i = 0; i < count * static_cast<int>(sizeof(T) / 4); ++i) __stwt(to + i, words[i]);
}
