// A launch may begin while the one before it ends (programmatic dependent launch).
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// All threads let the next launch begin, and wait for the launch before ahead of their first access. What they read
/// stays behind that wait: not by the read-only cache, which takes for granted that nobody writes it during the launch.
/// Kernels that copy operands by plain loads do not begin early, nor those of roles whose threads read.
void place_pdl_waits(Plan& plan);

}  // namespace tessera::internal::codegen
