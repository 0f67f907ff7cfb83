#include <fmt/format.h>

#include "codegen/analysis/budget.hpp"
#include "codegen/passes/plan/hint_notes.hpp"
#include "codegen/passes/plan/no_hoist_loads.hpp"
#include "codegen/passes/plan/planning.hpp"

namespace tessera::internal::plan_pass {

using namespace lowering;

// Rejects a schedule for which a thread's registers do not suffice, and chooses how many CTAs a multiprocessor holds.
bool registers(Planning& planning) {
  Plan& plan = planning.plan;
  const GraphAnalysis& analysis = planning.analysis;
  const KernelSchedule& schedule = planning.search.current();
  const bool has_matmuls = first_matmul(analysis) != no_id;
  const auto reject = [&](int values, int room) {
    planning.search.reject(
        {fmt::format("values need {} registers, and a thread has {}", values, room), place_of_matmul(analysis)});
    return false;
  };
  if (schedule.is_warp_specialized()) {
    const auto [values, room] = role_pressure(plan, schedule.reads_ahead());
    return values <= room || reject(values, room);
  }
  const Pressure needed = pressure(plan);
  const Budget budget(plan.target, plan.threads(), has_matmuls);
  if (needed.all > budget.registers() && !planning.search.is_last()) return reject(needed.all, budget.registers());
  // ptxas would read rows ahead, with their factors, until few CTAs fit on a multiprocessor.
  const int values = pressure(plan, !has_matmuls).values;
  const int hinted = hinted_blocks(analysis, plan, has_matmuls, values);
  plan.blocks = hinted > 0 ? hinted : budget.blocks(plan, values);
  forbid_load_hoisting(plan);
  return true;
}

}  // namespace tessera::internal::plan_pass
