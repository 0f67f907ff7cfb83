// Walking through values that lie in memory by strides.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "cpu/tape.hpp"

namespace tessera::internal::cpu {

using Strides = std::array<std::int64_t, max_rank>;

/// Folds axes into one where every operand allows it; returns the rank that remains. Extents and strides are rewritten.
int collapse(Strides& extent, int rank, std::span<Strides> operands);
/// Strides of an operand of shape `from` as one of shape `to`, aligned at the right.
Strides stretched(const Strides& stride, const Shape& from, const Shape& to);
/// Elements from a value's first to the one at a position; along an axis of extent 1 that is 0.
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
