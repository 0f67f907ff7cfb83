// The order in which CTAs take the tiles of a grid, where the tiles differ in work.
#pragma once
#include <cstdint>
#include <span>

namespace tessera::internal {

/// The number of lines, each of all grid tiles along `axis`, whose tiles run together, where work grows along that axis
/// and all tiles of a line read the same memory. `at_once` CTAs run in a wave, and waves alternate in direction. The
/// lines are few, so that the L2 cache holds their memory while some tiles of each run at the same time; and their
/// tiles fill whole waves, since otherwise some multiprocessors would have the longer tiles of each section. If that is
/// impossible: all lines.
int l2_group_of(std::span<const std::int64_t> grid, int axis, std::int64_t at_once);

}  // namespace tessera::internal
