// The text of plans and steps.
#pragma once
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// A step in one line: "mma_17 += tile_4 tile_6: ...".
std::string step_text(const Plan& plan, const Step& step);

}  // namespace tessera::internal::codegen
