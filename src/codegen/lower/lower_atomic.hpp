#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// Lowers an atomic. Where its old values are used, all threads that hold an element receive that of the thread that
/// changed it.
void atomic(Steps& steps, Id id);

}  // namespace tessera::internal::lowering
