// Layouts for sorting lines: a line is split into chunks, and the lanes of a warp sort a chunk in their registers.
#pragma once
#include "codegen/layout/layout.hpp"

namespace tessera::internal::codegen {

/// The number of neighbors of a line that a warp sorts on its own: a power of two, which covers the line if that is not
/// too long.
int sort_chunk(int extent, ElementType type);
/// The number of chunks of a line.
int sort_chunks(int extent, ElementType type);

/// The layout of sorted chunks: element i of a chunk is in register i % registers of lane i / registers. So as many
/// comparisons as possible stay within a lane. Lines along an axis other than the last use as few lanes as possible:
/// then accesses along the last axis are coalesced.
Layout sorted_layout(const Shape& shape, int axis, ElementType type, int warps);
/// The layout of the same chunks before sorting, in the same registers of the same warps: neighboring lanes hold
/// neighboring elements, so that accesses are coalesced.
Layout unsorted_layout(const Layout& sorted, int axis);
/// Do the threads that hold a chunk of `to` hold the same elements in `from`, in any order, and in the same registers?
bool sorts_from(const Layout& from, const Layout& to, int axis);

}  // namespace tessera::internal::codegen
