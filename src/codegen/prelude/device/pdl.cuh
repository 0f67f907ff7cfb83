// Waits until the preceding launches have completed and their writes are visible (PTX ISA, "griddepcontrol").
__device__ inline void griddep_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Lets the next launch begin, where resources are free, once all CTAs of this one have called this or ended.
__device__ inline void griddep_launch_dependents() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Prefetches rows [row, row + rows) and columns [column, column + columns) of a matrix into the L2 cache, as far as
// they exist. Each of the CTA's threads takes some of the 128-byte lines.
template <int threads, class T>
__device__ inline void prefetch_l2(const T* matrix, i64 row, int rows, int all_rows, i64 column, int columns,
                                   int all_columns, i64 stride) {
  rows = static_cast<int>(row + rows < all_rows ? rows : all_rows - row);
  columns = static_cast<int>(column + columns < all_columns ? columns : all_columns - column);
  if (rows <= 0 || columns <= 0) return;
  constexpr int line = 128 / static_cast<int>(sizeof(T));
  const int lines = (columns + line - 1) / line;
#pragma unroll 1
  for (int i = thread_index(); i < rows * lines; i += threads) {
    const T* const at = matrix + ((row + i / lines) * stride + column + i % lines * line);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory");
  }
}
