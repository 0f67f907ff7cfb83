// The rules that every plan must obey. The verifier trusts no pass: it recomputes what passes decided.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Each violated rule as a sentence that names the step or the entry; empty: the plan is valid. Rules about memory,
/// barriers and parameters are checked once the plan has progressed that far (Plan::progress).
std::vector<std::string> violations(const Plan& plan);

/// Throws InternalError with the pass and the first violated rule.
void verify(const Plan& plan, std::string_view pass);

}  // namespace tessera::internal::codegen
