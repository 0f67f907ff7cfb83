#include <fmt/format.h>

#include "codegen/analysis/budget.hpp"
#include "codegen/passes/plan/hint_notes.hpp"
#include "codegen/passes/plan/no_hoist_loads.hpp"
#include "codegen/passes/plan/planning.hpp"

namespace tessera::internal::plan_pass {

using namespace lowering;

// Chooses the fewest threads, and the most elements in registers, for which a thread's registers suffice.
bool registers(Planning& planning) {
  Plan& plan = planning.plan;
  if (const ScheduleCandidate* const candidate = candidate_of(planning)) {
    const auto* const how = std::get_if<WarpSpecializedGemm>(candidate);
    const auto [values, room] = role_pressure(plan, how && how->reads_ahead);
    return values <= room ||
           reject_candidate(planning, fmt::format("values need {} registers, and a thread has {}", values, room),
                            location_of(planning.analysis, *candidate));
  }
  const Pressure needed = pressure(plan);
  const Budget budget(plan.target, plan.threads(), planning.has_matmuls);
  // ptxas would read rows ahead, with their factors, until few CTAs fit on a multiprocessor.
  const int values = pressure(plan, !planning.has_matmuls).values;
  const int hinted = hinted_blocks(planning.analysis, plan, planning.has_matmuls, values);
  plan.blocks = hinted > 0 ? hinted : budget.blocks(plan, values);
  if (needed.all <= budget.registers() || planning.attempt + 1 == planning.attempts.size()) {
    forbid_load_hoisting(plan);
    return true;
  }
  ++planning.attempt;
  planning.in_memory.values.clear();
  return false;
}

}  // namespace tessera::internal::plan_pass
