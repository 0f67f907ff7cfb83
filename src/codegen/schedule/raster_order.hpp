// Which blocks of a grid run together, where they differ.
#pragma once
#include <cstdint>
#include <span>

namespace tessera::internal {

/// How many blocks of all axes but `axis` run together along it, `at_once` in one round and as many to and fro, where
/// blocks have ever more to do along that axis, and all of a line along it read the same memory. A few lines, whose
/// memory the L2 cache holds while some blocks of each run at the same time; and so many that their blocks fill whole
/// rounds, else some multiprocessors would have the longer blocks of each section. Else all lines.
int l2_group_of(std::span<const std::int64_t> grid, int axis, std::int64_t at_once);

}  // namespace tessera::internal
