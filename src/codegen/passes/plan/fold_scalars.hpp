// Numbers of a plan that are known, or that are steps on the way to one number.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Replaces integers that are known by literals, and computes terms of literals: the first iteration of a peeled loop
/// counts 0. Where the author wrote one number as one expression, it becomes one step again. Steps that nothing reads
/// any more are removed.
void fold_scalars(Plan& plan);

}  // namespace tessera::internal::codegen
