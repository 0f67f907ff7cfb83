#include "codegen/passes/plan/hint_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/analysis/budget.hpp"
#include "codegen/plan/remarks.hpp"

namespace tessera::internal::lowering {
namespace {

// Stages of loops that prefetch, by themselves or through pipelines.
void find_stages(const Plan& plan, const Body& steps, bool in_loop, std::set<int>& found) {
  for (const Step& step : steps) {
    const Loop* const loop = step.action.as<Loop>();
    const WaitFull* const wait = step.action.as<WaitFull>();
    if (loop && loop->stages > 1) found.insert(loop->stages);
    if (wait && in_loop) found.insert(plan.pipelines[plan.states[wait->state].pipeline].stages);
    each_body(step, [&](const Body& inner) { find_stages(plan, inner, in_loop || loop, found); });
  }
}

}  // namespace

int hinted_blocks(const GraphAnalysis& analysis, const Plan& plan, bool has_matmuls, int needed) {
  const int blocks = analysis.hints.occupancy, threads = plan.threads();
  if (blocks < 1 || blocks > std::min(analysis.target.threads / threads, analysis.target.resident_blocks)) return 0;
  return Budget(analysis.target, threads, has_matmuls).holds(blocks, needed) ? blocks : 0;
}

void note_hints(const GraphAnalysis& analysis, Plan& plan) {
  const Hints& hints = analysis.hints;
  const auto note = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    add_remark(plan, plan.location, Remark::Status::missed, remark_kind::hint, format, std::forward<Args>(args)...);
  };
  const std::vector<Role>& roles = plan.phases[0].roles;
  const int warps = plan.threads() / 32;
  if (hints.warps && hints.warps != warps) {
    if (roles.size() > 1)
      note("{} warps; the warp-specialized kernel has {}", hints.warps, warps);
    else
      note("{} warps; its tiles need {}", hints.warps, warps);
  }
  std::set<int> stages;
  for (const Role& role : roles) find_stages(plan, role.body, false, stages);
  if (hints.stages && stages.empty() && hints.stages != 1) note("{} stages; no loop prefetches", hints.stages);
  for (const int has : stages)
    if (hints.stages && has != hints.stages) note("{} stages; a loop has {}", hints.stages, has);
  if (hints.occupancy && hints.occupancy != plan.blocks)
    note("{} CTAs per multiprocessor; {}", hints.occupancy,
         roles.size() > 1 ? fmt::format("the warp-specialized kernel has {}", plan.blocks)
                          : fmt::format("registers or other limits allow {}", plan.blocks));
  if (hints.cluster > 1 && plan.phases[0].schedule.split_k != SplitK::cluster)
    note("a cluster of {}; this plan has no split-K in clusters", hints.cluster);
}

}  // namespace tessera::internal::lowering
