// The kernel's parameters.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Sets the parameters that a launch passes; then the plan is complete.
void set_parameters(Plan& plan);

}  // namespace tessera::internal::codegen
