// What must hold of a plan, whatever made it. Nothing here trusts a pass: what one decided is worked out again.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Each broken rule as a sentence that names the step or the thing; empty: the plan holds. Rules about memory, barriers
/// and parameters are asked once the plan has come so far (Plan::progress).
std::vector<std::string> violations(const Plan& plan);

/// Throws InternalError with the pass and the first broken rule.
void verify(const Plan& plan, std::string_view pass);

}  // namespace tessera::internal::codegen
