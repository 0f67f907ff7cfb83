// Dead code elimination in a plan: removes steps whose results are not used.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

void eliminate_dead_steps(Plan& plan);

}  // namespace tessera::internal::codegen
