#include "codegen/passes/plan/pdl.hpp"

#include <algorithm>

#include "codegen/analysis/prefetched_weights.hpp"
#include "codegen/passes/plan/no_hoist_loads.hpp"
#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/effects.hpp"
#include "codegen/plan/remarks.hpp"

namespace tessera::internal::codegen {
namespace {

void read_behind_wait(Body& steps) {
  for (Step& step : steps) {
    each_body(step, read_behind_wait);
    each_read(step, [](const Sweep&, TileAccess& read) { read.in_order = true; });
  }
}

// The compiler may hoist the plain loads of copies. Warp-specialized roles have no registers for loads that cannot
// move. Returns why the kernel cannot wait, and `where`; empty: it can.
std::string why_no_wait(const Plan& plan, Location& where) {
  std::string why;
  const auto because = [&](const Step& step, std::string_view reason) {
    if (why.empty()) why = reason, where = step.location;
  };
  PlanWalk walk(plan);
  walk.each([&](const Role& role, const Step& step, int, const std::vector<const Interval*>&) {
    if (const Fetch* const fetch = step.action.as<Fetch>())
      if (!std::ranges::all_of(fetch->tiles, [](const auto& tile) { return tile.copy == Fetch::Copy::async; }))
        because(step, "an operand is copied through registers");
    const auto reads = [](const Effect& effect) { return effect.space == Effect::Space::tensor && !effect.write; };
    if (plan.phases.front().roles.size() > 1 && std::ranges::any_of(effects(plan, role, step), reads))
      because(step, "threads of a warp-specialized kernel read a tensor");
  });
  return why;
}

// After the role's prefetch before the wait; if it has none, after its SetMaxNReg.
void wait_in_role(Body& steps) {
  const auto behind = [&]<class Kind>() {
    const auto found = std::ranges::find_if(steps, [](const Step& step) { return step.action.is<Kind>(); });
    return found == steps.end() ? found : found + 1;
  };
  auto at = behind.operator()<PrefetchBeforeWait>();
  if (at == steps.end()) at = behind.operator()<SetMaxNReg>();
  steps.insert(at == steps.end() ? steps.begin() : at, {GridDependencyWait{}});
}

}  // namespace

void place_pdl_waits(Plan& plan) {
  if (!plan.target.programmatic_launch) return;
  Location where = plan.location;
  const std::string why = why_no_wait(plan, where);
  const bool waits = why.empty(), roles = plan.phases.front().roles.size() > 1;
  if (waits)
    add_remark(plan, where, Remark::Status::passed, remark_kind::pdl,
               "the kernel may begin while the previous launch ends (programmatic dependent launch)");
  else
    add_remark(plan, where, Remark::Status::missed, remark_kind::pdl,
               "the kernel begins when the previous launch has ended, as {}", why);
  if (!waits && !roles) return;
  // The barrier that ends the prologue comes after it.
  Body& prologue = plan.phases.front().prologue;
  const auto at = prologue.empty() ? prologue.end() : prologue.end() - 1;
  if (!waits) {
    prologue.insert(at, {GridDependencyTrigger{}});
    return;
  }
  if (!plan.prefetched_before_wait().empty()) {
    prologue.insert(at, {GridDependencyTrigger{}});
    for (Role& role : plan.phases.front().roles) wait_in_role(role.body);
    return;
  }
  Body prefetches = roles ? Body() : prefetched_weights(plan);
  if (prefetches.empty()) {
    prologue.insert(at, {{GridDependencyTrigger{}}, {GridDependencyWait{}}});
  } else {
    // They need the coordinates of the CTA's grid tile, which the role computes.
    prologue.insert(at, {GridDependencyTrigger{}});
    Body& body = plan.phases.front().roles.front().body;
    prefetches.push_back({GridDependencyWait{}});
    body.insert(body.begin(), prefetches.begin(), prefetches.end());
  }
  for (Phase& phase : plan.phases)
    for (Role& role : phase.roles) read_behind_wait(role.body);
}

}  // namespace tessera::internal::codegen

bool tessera::internal::plan_pass::pdl(lowering::Planning& planning) {
  codegen::place_pdl_waits(planning.plan);
  return true;
}
