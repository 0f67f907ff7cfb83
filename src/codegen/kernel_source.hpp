// From a plan to the facts that its launch needs.
#pragma once
#include "codegen/generate.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::internal {

/// The text of a complete plan, with its decisions on top, and the facts that a launch needs.
KernelSource kernel_source(const codegen::Plan& plan);

}  // namespace tessera::internal
