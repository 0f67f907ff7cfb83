// Reshapes that merge neighboring axes of a tile, or, read the other way, split them.
#pragma once
#include <optional>
#include <vector>

#include "tessera/graph/shape.hpp"

namespace tessera::internal {

/// Axes of a tile that are merged into one, the slowest first, without those of extent 1.
using Axes = std::vector<int>;

/// The axes of a tile of shape `from` that make up each axis of a tile of shape `to` with the same elements; none if
/// that needs a part of an axis.
std::optional<std::vector<Axes>> merged_axes(const Shape& from, const Shape& to);

/// The extent of the axis that axes of a tile are merged into.
int merged_extent(const Shape& shape, const Axes& axes);

}  // namespace tessera::internal
