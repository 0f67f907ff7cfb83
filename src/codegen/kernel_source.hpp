// From a plan to what a launch of it needs.
#pragma once
#include "codegen/generate.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::internal {

/// The text of a complete plan, its decisions on top, and the facts that a launch must know.
KernelSource kernel_source(const codegen::Plan& plan);

}  // namespace tessera::internal
