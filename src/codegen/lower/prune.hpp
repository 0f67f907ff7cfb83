// Steps whose results nobody names go.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

void prune(Plan& plan);

}  // namespace tessera::codegen
