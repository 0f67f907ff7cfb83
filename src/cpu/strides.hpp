// Iteration over strided values in memory.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "cpu/tape.hpp"

namespace tessera::internal::cpu {

using Strides = std::array<std::int64_t, max_rank>;

/// Merges axes where every operand allows it; returns the remaining rank. Extents and strides are rewritten.
int collapse(Strides& extent, int rank, std::span<Strides> operands);
/// Strides of an operand of shape `from` broadcast to shape `to`, aligned at the right.
Strides stretched(const Strides& stride, const Shape& from, const Shape& to);
/// Offset in elements of a position from the value's first element; along an axis of extent 1 it is 0.
inline std::int64_t offset_in(const Ref& value, const Strides& position, const Shape& shape) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < shape.rank(); ++axis)
    offset += position[static_cast<std::size_t>(axis)] * value.stride[static_cast<std::size_t>(axis)];
  return offset;
}
Strides extents_of(const Shape& shape);
/// The elements, row-major.
void copy(char* out, const Ref& from, const Shape& shape, HostType type);

}  // namespace tessera::internal::cpu
