#include "codegen/passes/plan/pdl.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "codegen/analysis/prefetched_weights.hpp"
#include "codegen/passes/plan/no_hoist_loads.hpp"
#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/effects.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/plan/shared_state.hpp"

namespace tessera::internal::codegen {
namespace {

void read_behind_wait(Body& steps) {
  for (Step& step : steps) {
    each_body(step, read_behind_wait);
    each_read(step, [](const Sweep&, TileAccess& read) { read.in_order = true; });
  }
}

// The compiler may hoist the plain loads of copies. In their loops, warp-specialized roles have no registers for loads
// that cannot move. Returns why the kernel cannot wait, and `where`; empty: it can.
std::string why_no_wait(const Plan& plan, Location& where) {
  std::string why;
  const auto because = [&](const Step& step, std::string_view reason) {
    if (why.empty()) why = reason, where = step.location;
  };
  PlanWalk walk(plan);
  walk.each([&](const Role& role, const Step& step, int, const std::vector<const Interval*>& loops) {
    if (const Fetch* const fetch = step.action.as<Fetch>())
      if (!std::ranges::all_of(fetch->tiles, [](const auto& tile) { return tile.copy == Fetch::Copy::async; }))
        because(step, "an operand is copied through registers");
    const auto reads = [](const Effect& effect) { return effect.space == Effect::Space::tensor && !effect.write; };
    if (plan.phases.front().roles.size() > 1 && !loops.empty() && std::ranges::any_of(effects(plan, role, step), reads))
      because(step, "threads of a warp-specialized kernel read a tensor in a loop");
  });
  return why;
}

// The effects of a step, its bodies included, on memory of the CTA.
void each_shared_effect(const Plan& plan, const Step& step, const std::function<void(const Effect&)>& act) {
  for (const Effect& effect : effects(plan, plan.phases.front().roles.front(), step))
    if (effect.space != Effect::Space::tensor) act(effect);
  each_body(step, [&](const Body& body) {
    for (const Step& inner : body) each_shared_effect(plan, inner, act);
  });
}

// Takes the loads of a latency-bound kernel that need no wait if no earlier launch writes what they read: of right
// operands from tensors of rank 2 and of tensors of rank 1, which are weights in most kernels. Their coordinates must
// be known from the start.
Body take_early_loads(const Plan& plan, Body& body) {
  bool latency_bound = false;
  std::set<ValueId> weights;
  std::set<BufferId> weight_buffers;
  std::set<StorageId> made;  // by steps
  const std::function<void(const Body&)> look = [&](const Body& steps) {
    for (const Step& step : steps) {
      for (const ValueId id : results(step)) made.insert(plan.values[id].storage);
      if (const Mma* const mma = step.action.as<Mma>(); mma && mma->matmul.is_latency_bound()) {
        latency_bound = true;
        weights.insert(mma->matmul.b.value), weight_buffers.insert(mma->matmul.b.buffer);
      }
      each_body(step, look);
    }
  };
  look(body);
  if (!latency_bound || plan.learns_of_others() || plan.phases.size() > 1) return {};
  if (plan.persistent()) return {};  // a persistent CTA copies over what it read before
  const auto is_weight = [&](const TileAccess& access, bool right) {
    const Parameter& tensor = plan.tensors[static_cast<std::size_t>(access.parameter)];
    return !access.member && tensor.access == Access::in && (tensor.rank == 1 || (tensor.rank == 2 && right));
  };
  const auto is_early = [&](const Step& step) {
    if (std::ranges::any_of(operands(step), [&](ValueId id) { return made.contains(plan.values[id].storage); }))
      return false;
    const Load* const load = step.action.as<Load>();
    if (load)
      return is_weight(load->access, weights.contains(load->out)) && plan.is_in_registers(load->out) &&
             !plan.storage(load->out).changes;  // another step may write it before
    const Fetch* const fetch = step.action.as<Fetch>();
    return fetch && std::ranges::all_of(fetch->tiles, [&](const Fetch::Tile& tile) {
             return tile.copy == Fetch::Copy::async && is_weight(tile.access, weight_buffers.contains(tile.buffer));
           });
  };
  // A check may guard the loads behind it, and a copy may take the place of what is in shared memory before.
  Body early, late;
  SharedState behind;  // accesses of the steps that stay behind
  bool checked = false, fetches = false;
  for (Step& step : body) {
    checked |= step.action.is<HostReport>();
    bool is_free = true;
    each_shared_effect(plan, step, [&](const Effect& effect) { is_free &= !behind.conflicts(plan, effect); });
    const bool is_early_step =
        !checked && ((is_early(step) && is_free) || (fetches && step.action.is<CpAsyncCommit>()));
    fetches = is_early_step && step.action.is<Fetch>();
    if (!is_early_step) each_shared_effect(plan, step, [&](const Effect& effect) { behind.add(effect); });
    (is_early_step ? early : late).push_back(std::move(step));
  }
  body = std::move(late);
  return early;
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

// Prefetches into L2, and loads that need no wait if no earlier launch writes what they read.
Body take_what_needs_no_wait(const Plan& plan, Body& body) {
  Body all = prefetched_weights(plan);
  Body loads = take_early_loads(plan, body);
  if (loads.empty()) return all;
  Body early = prefetched_weights(plan);  // of what is loaded later
  // If it must wait first, weights are at least on their way to L2.
  if (early.empty()) {
    early = std::move(all);
    for (Step& step : early) step.action.get<PrefetchL2>().unless_may_prefetch = true;
  }
  early.push_back({GridDependencyWait{.unless_may_prefetch = true}});
  std::ranges::move(loads, std::back_inserter(early));
  return early;
}

}  // namespace

void place_pdl_waits(Plan& plan, bool launch_dependents) {
  if (!plan.target.programmatic_launch && !plan.in_sequence) return;
  Location where = plan.location;
  if (const std::string why = why_no_wait(plan, where); !why.empty()) {
    add_remark(plan, where, Remark::Status::missed, remark_kind::pdl,
               "the kernel begins when the previous launch has ended, as {}", why);
    return;
  }
  if (!plan.in_sequence)
    add_remark(plan, where, Remark::Status::passed, remark_kind::pdl,
               "the kernel may begin while the previous launch ends (programmatic dependent launch)");
  Phase& first = plan.phases.front();
  Body wait = {{GridDependencyWait{}}};
  Body early;
  if (first.roles.size() == 1) {
    // The next launch begins once all CTAs are behind their wait, so that at most two launches share the SMs. Waiting
    // CTAs of more launches would take the places of the CTAs that run, several of which then share an SM.
    if (launch_dependents) wait.push_back({GridDependencyTrigger{}});
    early = take_what_needs_no_wait(plan, first.roles.front().body);
  }
  // Warp-specialized kernels do not trigger the next launch, which begins when their CTAs have ended: a grid with fewer
  // CTAs than the GPU has SMs leaves some idle, which CTAs of the next launch would crowd.
  if (!plan.prefetched_before_wait().empty()) {
    for (Role& role : first.roles) wait_in_role(role.body);
  } else if (!early.empty()) {
    // It needs the coordinates of the CTA's grid tile, which the role computes.
    Body& body = first.roles.front().body;
    std::ranges::move(wait, std::back_inserter(early));
    body.insert(body.begin(), std::move_iterator(early.begin()), std::move_iterator(early.end()));
  } else {
    // The barrier that ends the prologue comes after it.
    Body& prologue = first.prologue;
    prologue.insert(prologue.empty() ? prologue.end() : prologue.end() - 1, wait.begin(), wait.end());
  }
  for (Phase& phase : plan.phases)
    for (Role& role : phase.roles) read_behind_wait(role.body);
}

}  // namespace tessera::internal::codegen

bool tessera::internal::plan_pass::pdl(lowering::Planning& planning) {
  codegen::place_pdl_waits(planning.plan, planning.analysis.hints.launch_dependents && !planning.in_sequence);
  return true;
}
