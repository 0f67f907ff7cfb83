// Where the values of a tensor program are in memory.
#pragma once
#include <optional>

#include "tensors/fusion.hpp"

namespace tessera::internal {

/// A stored value: elements of the memory of another one, its base, which is an input or has a buffer.
struct Placement {
  int base = -1;
  std::int64_t offset = 0;  ///< in elements
  Extents extents;
  std::array<std::int64_t, max_rank> strides{};
};

/// Dense memory of its own.
Placement dense_placement(int value, const Extents& extents);
/// The place of a stored value, or of a chain of permutations and slices of one.
Placement placement_of(const TensorProgram& program, const Fusion& fusion, int value);
/// A permutation or a slice of a placement.
Placement viewed(const Value& value, Placement placement);
/// The same elements in row-major order with other extents, if their places are so many steps apart along each axis.
std::optional<Placement> reshaped_placement(const Placement& placement, const Extents& extents);
/// Where a kernel writes a result.
Placement result_placement(const TensorProgram& program, const Fusion& fusion, const Result& result);
/// Merges the axis of a value along an axis of the domain into the next one: it then has one element, and the next one
/// has those of both, which must lie in each other.
void merge_axis(Placement& placement, const Use& use, int axis);
/// The elements of a placement that a use refers to, for axes of the domain and whole ones.
Placement used_part(Placement placement, const Use& use);

}  // namespace tessera::internal
