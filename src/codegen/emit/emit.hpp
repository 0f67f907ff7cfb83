// Emits a plan as text.
#pragma once
#include <string>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// The kernel as CUDA C++, without the prelude. A plan in a sequence becomes a struct of its parameters and a device
/// function (persistent_source.hpp), without the functions that it calls.
std::string emit(const Plan& plan);
/// The same, with the step that each line spells.
StepLines emit_lines(const Plan& plan);

}  // namespace tessera::internal::codegen
