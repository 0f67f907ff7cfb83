// Tiles that a kernel's registers cannot hold, as its author should know of them.
#pragma once
#include <string>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// One sentence about the largest of those that lie in shared memory or in the workspace for that, with the author's
/// place; empty: there are none.
std::string tiles_in_memory(const Plan& plan);

}  // namespace tessera::internal::codegen
