#include <fmt/format.h>

#include <algorithm>

#include "codegen/passes/plan/planning.hpp"
#include "codegen/passes/plan/remarks.hpp"
#include "codegen/plan/effects.hpp"

namespace tessera::internal::lowering {
namespace {

// Where a step first reads scratch memory, other than partials of other CTAs.
Location exchange(const Plan& plan, int of_parts) {
  std::optional<Location> at;
  PlanWalk walk(plan);
  walk.each([&](const Role& role, const Step& step, int, const std::vector<const Interval*>&) {
    const auto exchanges = [&](const Effect& effect) {
      return effect.space == Effect::Space::scratch && effect.index >= of_parts && !effect.write;
    };
    if (!at && std::ranges::any_of(effects(plan, role, step), exchanges)) at = step.location;
  });
  return at.value_or(plan.location);
}

// Consumer groups have only registers to hold elements. Returns the reason why a plan needs other memory; empty: it
// does not.
std::string needs_memory(const GraphAnalysis& analysis, const Plan& plan, Location& where) {
  const int of_parts = plan.phases[0].schedule.split_k != SplitK::none ? 1 : 0;
  if (plan.scratch.size() > of_parts) {
    where = exchange(plan, of_parts);
    return "threads exchange elements of tiles";
  }
  for (const Storage& storage : plan.storages)
    if (storage.storage_class != StorageClass::registers && storage.storage_class != StorageClass::variable) {
      where = location_of(analysis, storage.label);
      return fmt::format("a tile takes {} registers of each thread", storage.registers);
    }
  return {};
}

}  // namespace

}  // namespace tessera::internal::lowering

namespace tessera::internal::plan_pass {

using namespace lowering;

// Lowers the graph for the current attempt.
bool lower(Planning& planning) {
  const GraphAnalysis& analysis = planning.analysis;
  const Attempt& attempt = planning.attempts[planning.attempt];
  const ScheduleCandidate* const candidate = candidate_of(planning);
  const MatmulPlans matmuls = candidate
                                  ? std::visit([&](const auto& how) { return matmuls_of(analysis, how); }, *candidate)
                              : planning.has_matmuls ? plan_matmuls(analysis, attempt.warps)
                                                     : MatmulPlans{};
  const Layouts layouts = choose_layouts(analysis, matmuls.plans, planning.has_matmuls ? matmuls.warps : attempt.warps);
  Plan& plan = planning.plan;
  Phase& phase = plan.phases[0];
  phase.roles.clear();
  phase.axes = static_cast<int>(analysis.graph.grid.size());
  const bool has_block_matmuls = std::any_of(matmuls.plans.begin(), matmuls.plans.end(), [&](const auto& entry) {
    return entry.second.matmul.kind != MatmulKind::gemv &&
           analysis.graph.regions[analysis.graph[entry.first].region].kind == RegionKind::loop;
  });
  if (phase.axes >= 2 && has_block_matmuls) phase.schedule.raster_group = 8;
  if (candidate) {
    std::visit([&](const auto& how) { lower_roles(analysis, how, matmuls, layouts, plan); }, *candidate);
    Location where;
    const std::string why = needs_memory(analysis, plan, where);
    return why.empty() || reject_candidate(planning, why, where);
  }
  Role role{.name = "all", .warps = layouts.warps, .body = {}};
  const std::set<Id> more =
      lowering::lower(analysis, matmuls.plans, layouts, attempt.most_registers, planning.in_memory, {}, plan, role);
  phase.roles.push_back(std::move(role));
  const std::size_t before = planning.in_memory.values.size();
  planning.in_memory.values.insert(more.begin(), more.end());
  return planning.in_memory.values.size() == before;
}

}  // namespace tessera::internal::plan_pass
