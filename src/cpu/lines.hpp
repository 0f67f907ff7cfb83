// Values in memory as lines along an axis.
#pragma once
#include <cstdint>

#include "cpu/position.hpp"

namespace tessera::internal::cpu {

/// A value in memory, divided into lines along an axis; strides in elements.
struct Lines {
  const char* data;
  Strides stride;
  Shape shape;
  int axis;
};

/// Calls body(offset of the line's first element, number of the line) for every line.
template <class Body>
void each_line(const Lines& lines, const Body& body) {
  Strides extent{};
  for (int axis = 0; axis < lines.shape.rank(); ++axis) extent[at(axis)] = axis == lines.axis ? 1 : lines.shape[axis];
  std::int64_t line = 0;
  for_each_position(extent, lines.shape.rank(), [&](const Strides& position) {
    body(offset_of(position, lines.stride, lines.shape.rank()), line++);
  });
}

}  // namespace tessera::internal::cpu
