// A launch may begin while the previous one ends (programmatic dependent launch).
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// All threads wait for the previous launch before their first access. Their reads stay behind that wait: they do not
/// use the read-only cache, which assumes that its data is not written during the launch. With `launch_dependents`,
/// threads of a kernel of one role then let the next launch begin; else it begins when the CTAs have ended. Kernels
/// that copy operands by plain loads do not begin early, nor do warp-specialized kernels whose threads read.
void place_pdl_waits(Plan& plan, bool launch_dependents);

}  // namespace tessera::internal::codegen
