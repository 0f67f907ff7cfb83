// Matmuls of a plan as text.
#pragma once
#include <string>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// "4 x 2 warps", and their slices of k.
std::string warps_text(const Matmul& matmul);
/// A wgmma, with the descriptors of its operands.
std::string matmul_text(const Plan& plan, const Role& role, const Wgmma& wgmma);
std::string matmul_text(const Plan& plan, const Mma& mma);

}  // namespace tessera::internal::codegen
