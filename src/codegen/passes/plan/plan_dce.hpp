// Steps whose results nobody names go.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

void prune(Plan& plan);

}  // namespace tessera::internal::codegen
