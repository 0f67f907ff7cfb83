// The order in which CTAs take the tiles of a grid.
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

/// Rows of a grid of [m,n] tiles that run together. The CTAs of a wave, about 128, read `group` tiles of the left
/// operand and 128 / group of the right. The fewest bytes are read where group^2 = 128 n / m; this is the nearest power
/// of 2.
int raster_group_of(int m, int n);

}  // namespace tessera::internal
