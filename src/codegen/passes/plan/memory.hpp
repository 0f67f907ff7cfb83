// Offsets in shared memory. What is not in use at the same time shares a place; what does not fit goes to the
// workspace.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

void place_memory(Plan& plan);

}  // namespace tessera::internal::codegen
