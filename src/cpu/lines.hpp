// Values in memory as lines along an axis.
#pragma once
#include <array>
#include <cstdint>

#include "tessera/graph/graph.hpp"

namespace tessera::internal::cpu {

/// A value in memory, divided into lines along an axis; strides in elements.
struct Lines {
  const char* data;
  std::array<std::int64_t, max_rank> stride;
  Shape shape;
  int axis;
};

/// An axis as the index of an array.
inline std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

/// Calls body(offset of the line's first element, number of the line) for every line.
template <class Body>
void each_line(const Lines& lines, const Body& body) {
  std::array<std::int64_t, max_rank> position{};
  const std::int64_t count = lines.shape.size() / lines.shape[lines.axis];
  for (std::int64_t line = 0; line < count; ++line) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < lines.shape.rank(); ++axis) offset += position[at(axis)] * lines.stride[at(axis)];
    body(offset, line);
    for (int axis = lines.shape.rank() - 1; axis >= 0; --axis) {
      if (axis == lines.axis) continue;
      if (++position[at(axis)] < lines.shape[axis]) break;
      position[at(axis)] = 0;
    }
  }
}

}  // namespace tessera::internal::cpu
