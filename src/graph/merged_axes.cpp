#include "graph/merged_axes.hpp"

namespace tessera::internal {

std::optional<std::vector<Axes>> merged_axes(const Shape& from, const Shape& to) {
  std::vector<Axes> merged(static_cast<std::size_t>(to.rank()));
  int next = 0;
  for (int axis = 0; axis < to.rank(); ++axis)
    for (std::int64_t extent = 1; extent < to[axis]; ++next) {
      extent *= from[next];
      if (to[axis] % extent != 0) return std::nullopt;
      if (from[next] != 1) merged[static_cast<std::size_t>(axis)].push_back(next);
    }
  return merged;
}

int merged_extent(const Shape& shape, const Axes& axes) {
  int extent = 1;
  for (const int axis : axes) extent *= shape[axis];
  return extent;
}

}  // namespace tessera::internal
