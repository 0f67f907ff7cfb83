// Orders along an axis, and counts of numbers.
#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// Lowers sort and argsort of the same elements in the same order, either of which may be no_id: they are sorted once.
void sort(Steps& steps, Id sort, Id argsort);
/// Lowers histogram and inverse_permutation.
void histogram(Steps& steps, Id id);

}  // namespace tessera::internal::lowering
