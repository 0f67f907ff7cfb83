// Layouts of lines that are sorted: parts of a line, chunks, by the lanes of a warp in their registers.
#pragma once
#include "codegen/plan/layout.hpp"

namespace tessera::internal::codegen {

/// How many neighbours of a line a warp sorts by themselves: a power of two, which covers the line if it is not too
/// long.
int sort_chunk(int extent, ElementType type);
/// How many chunks a line has.
int sort_chunks(int extent, ElementType type);

/// Chunks of sorted lines: element i of a chunk is in register i % registers of lane i / registers, so that keys are
/// compared within lanes as often as can be. Lines across the last axis have as few lanes as can be: neighbours along
/// it are read together then.
Layout sorted_layout(const Shape& shape, int axis, ElementType type, int warps);
/// The same chunks in the same registers of the same warps, before they are sorted: neighbours are read together, and
/// lanes have neighbours of one another.
Layout unsorted_layout(const Layout& sorted, int axis);
/// Have the threads that hold a chunk of `to` the same elements in `from`, in whatever order, and in the same
/// registers?
bool sorts_from(const Layout& from, const Layout& to, int axis);

}  // namespace tessera::internal::codegen
