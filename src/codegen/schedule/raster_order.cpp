#include "codegen/schedule/raster_order.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tessera::internal {

int l2_group_of(std::span<const std::int64_t> grid, int axis, std::int64_t at_once) {
  const std::int64_t length = grid[static_cast<std::size_t>(axis)];
  std::int64_t lines = 1;
  for (std::size_t i = 0; i < grid.size(); ++i) lines *= static_cast<int>(i) == axis ? 1 : grid[i];
  // With an even number of waves, each multiprocessor has as many early CTAs as late ones.
  for (const std::int64_t tiles : {2 * at_once, at_once}) {
    const std::int64_t unit = tiles / std::gcd(length, tiles), most = at_once / 2;
    const std::int64_t units = std::max<std::int64_t>((at_once / 8 + unit - 1) / unit, 1);
    if (unit * units <= most) return static_cast<int>(std::min(unit * units, lines));
  }
  return static_cast<int>(std::min<std::int64_t>(lines, std::numeric_limits<int>::max()));
}

int raster_group_of(int m, int n) {
  constexpr int wave = 128, least = 4, most = 16;
  int group = least;
  while (group < most && 2 * group * group * m <= wave * n) group *= 2;
  return group;
}

}  // namespace tessera::internal
