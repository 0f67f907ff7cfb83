// Masks of index expressions, such as a causal mask's columns <= rows: the place of a tile says whether it is masked
// anywhere.
#pragma once
#include <optional>

#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// May a tile's condition be false for some of its elements? A number that follows from the launch, the grid tile and
/// the iteration, for node `about`; none if the condition does not consist of comparisons of sums and quotients of
/// indices.
std::optional<ValueId> fails_somewhere(Steps& steps, Id condition, Id about);

}  // namespace tessera::internal::lowering
