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

// The reshape there that moves elements, if any.
std::string reshape_at(const GraphAnalysis& analysis, const Location& at) {
  const auto is_there = [&](const Location& of) {
    return of.line == at.line && std::string_view(of.file) == std::string_view(at.file);
  };
  for (const auto& region : analysis.order)
    for (const Id id : region)
      if (const Node& node = analysis[id]; node.op == Op::reshape && is_there(node.location) && node.shape.size() > 1)
        return fmt::format(", for the reshape of {} to {}", to_string(analysis[node.in[0]].shape),
                           to_string(node.shape));
  return {};
}

// Consumer groups have only registers to hold elements: why the plan needs other memory.
Refusal needs_memory(const GraphAnalysis& analysis, const Plan& plan) {
  const int of_parts = plan.phases[0].schedule.split_k != SplitK::none ? 1 : 0;
  if (plan.scratch.size() > of_parts) {
    const Location at = exchange(plan, of_parts);
    return {"threads exchange elements of tiles" + reshape_at(analysis, at), at};
  }
  for (const Storage& storage : plan.storages)
    if (storage.storage_class != StorageClass::registers && storage.storage_class != StorageClass::variable)
      return {fmt::format("a tile takes {} registers of each thread", storage.registers),
              location_of(analysis, storage.label)};
  return {};
}

}  // namespace

}  // namespace tessera::internal::lowering

namespace tessera::internal::plan_pass {

using namespace lowering;

// Chooses layouts, and lowers the graph by the current schedule.
bool lower(Planning& planning) {
  const GraphAnalysis& analysis = planning.analysis;
  const KernelSchedule& schedule = planning.search.current();
  const MatmulPlans matmuls = schedule.matmuls(analysis);
  const Layouts layouts = choose_layouts(analysis, matmuls.plans, matmuls.warps);
  Plan& plan = planning.plan;
  Phase& phase = plan.phases[0];
  phase.roles.clear();
  phase.axes = static_cast<int>(analysis.graph.grid.size());
  const bool has_block_matmuls = std::any_of(matmuls.plans.begin(), matmuls.plans.end(), [&](const auto& entry) {
    return entry.second.matmul.kind != MatmulKind::gemv &&
           analysis.graph.regions[analysis.graph[entry.first].region].kind == RegionKind::loop;
  });
  if (phase.axes >= 2 && has_block_matmuls) phase.schedule.raster_group = 8;
  schedule.lower(analysis, matmuls, layouts, planning.left_in_memory, plan);
  if (!schedule.is_warp_specialized()) return true;
  Refusal refusal = needs_memory(analysis, plan);
  if (!refusal) return true;
  planning.search.reject(std::move(refusal));
  return false;
}

}  // namespace tessera::internal::plan_pass
