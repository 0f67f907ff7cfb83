// Iteration over strided values in memory.
#pragma once
#include <cstdint>
#include <span>

#include "cpu/position.hpp"
#include "cpu/tape.hpp"

namespace tessera::internal::cpu {

/// Merges axes where every operand allows it; returns the remaining rank. Extents and strides are rewritten.
int collapse(Strides& extent, int rank, std::span<Strides> operands);
/// Strides of an operand of shape `from` broadcast to shape `to`, aligned at the right.
Strides stretched(const Strides& stride, const Shape& from, const Shape& to);
/// Strides of an operand of shape `from` reshaped to `to`. Unless only axes of extent 1 differ, it must be dense.
Strides reshaped(const Strides& stride, const Shape& from, const Shape& to);
Strides extents_of(const Shape& shape);
/// The elements, row-major.
void copy(char* out, const Ref& from, const Shape& shape, HostType type);

}  // namespace tessera::internal::cpu
