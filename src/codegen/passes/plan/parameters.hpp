// The kernel's parameters.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// What a launch of the plan fills in; with this it is complete.
void set_parameters(Plan& plan);

}  // namespace tessera::internal::codegen
