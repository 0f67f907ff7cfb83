// Orders along an axis, and counts of numbers.
#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// sort and argsort of the same elements in the same order, of which either may be none: they are sorted once.
void sort(Steps& steps, Id sort, Id argsort);
/// histogram
void histogram(Steps& steps, Id id);

}  // namespace tessera::internal::lowering
