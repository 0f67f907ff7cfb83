#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// Lowers an atomic. Where its old values are used, all threads that hold an element receive that of the thread that
/// changed it.
void atomic(Steps& steps, Id id);

/// Does a CTA learn what another one did, by an old value or by a memory order? Such atomics concern all threads of the
/// CTA.
bool learns_of_others(const GraphAnalysis& analysis);

}  // namespace tessera::internal::lowering
