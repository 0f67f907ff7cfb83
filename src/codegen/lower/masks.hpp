// Masks of index expressions, as a causal one's columns <= rows: whether a whole tile is seen follows from where it
// lies.
#pragma once
#include <optional>

#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// May a tile's condition not hold for some of its elements? A number that follows from the launch, the block and the
/// round, for node `about`; none if the condition is not made of comparisons of sums of indices.
std::optional<ValueId> fails_somewhere(Steps& steps, Id condition, Id about);

}  // namespace tessera::internal::lowering
