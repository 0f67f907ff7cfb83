#include "codegen/plan/verify_plan.hpp"

#include "codegen/plan/verify.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::codegen {

std::vector<std::string> violations(const Plan& plan) {
  Findings findings(plan);
  if (check_ids(findings)) {
    check_launch(findings);
    check_values(findings);
    check_sorts(findings);
    check_accesses(findings);
    check_roles(findings);
    check_turns(findings);
    check_contents(findings);
    if (plan.progress >= Progress::placed) check_memory(findings);
    if (plan.progress >= Progress::synchronised) check_sync(findings);
  }
  return std::move(findings.found);
}

void verify(const Plan& plan, std::string_view pass) {
  if (const std::vector<std::string> found = violations(plan); !found.empty())
    throw InternalError(fmt::format("the plan of kernel '{}' after pass '{}': {}", plan.author, pass, found.front()));
}

}  // namespace tessera::internal::codegen
