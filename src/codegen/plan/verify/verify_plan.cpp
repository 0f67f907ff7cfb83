#include "codegen/plan/verify/verify_plan.hpp"

#include "codegen/plan/verify/verify.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::codegen {

std::vector<std::string> violations(const Plan& plan) {
  Diagnostics diagnostics(plan);
  if (check_ids(diagnostics)) {
    check_launch(diagnostics);
    check_values(diagnostics);
    check_sorts(diagnostics);
    check_accesses(diagnostics);
    check_roles(diagnostics);
    check_multicast(diagnostics);
    check_ordered_barriers(diagnostics);
    check_contents(diagnostics);
    if (plan.progress >= Progress::placed) check_memory(diagnostics);
    if (plan.progress >= Progress::synchronized) check_sync(diagnostics);
  }
  return std::move(diagnostics.found);
}

void verify(const Plan& plan, std::string_view pass) {
  if (const std::vector<std::string> found = violations(plan); !found.empty())
    throw InternalError(fmt::format("the plan of kernel '{}' after pass '{}': {}", plan.author, pass, found.front()));
}

}  // namespace tessera::internal::codegen
