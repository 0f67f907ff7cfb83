// Positions of elements in values of several axes.
#pragma once
#include <array>
#include <cstdint>

#include "tessera/graph/graph.hpp"

namespace tessera::internal::cpu {

/// A number for each axis: a position, strides or extents, in elements.
using Strides = std::array<std::int64_t, max_rank>;

/// An axis as the index of an array.
inline std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

/// Calls each(position) for every position of the first `rank` axes, in row-major order. Extents are at least 1.
template <class Each>
void for_each_position(const Strides& extent, int rank, const Each& each) {
  Strides position{};
  for (int axis = rank; axis >= 0;) {
    each(position);
    for (axis = rank - 1; axis >= 0; --axis) {
      if (++position[at(axis)] < extent[at(axis)]) break;
      position[at(axis)] = 0;
    }
  }
}

/// Elements from the first to the one at a position.
inline std::int64_t offset_of(const Strides& position, const Strides& stride, int rank) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < rank; ++axis) offset += position[at(axis)] * stride[at(axis)];
  return offset;
}

}  // namespace tessera::internal::cpu
