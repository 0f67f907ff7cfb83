// Emits a plan as text.
#pragma once
#include <string>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// The kernel as CUDA C++, without the prelude.
std::string emit(const Plan& plan);

}  // namespace tessera::internal::codegen
