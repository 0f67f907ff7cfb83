#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// An atomic. Where its old values are used, all who hold an element get that of the one who changed it.
void atomic(Steps& steps, Id id);

/// Does some block learn what another one did, by an old value or by an order? That is for all threads of the block.
bool learns_of_others(const GraphAnalysis& analysis);

}  // namespace tessera::internal::lowering
