#include "codegen/passes/plan/hint_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/analysis/budget.hpp"
#include "codegen/plan/remarks.hpp"

namespace tessera::internal::lowering {
namespace {

// Stages of loops that prefetch.
void find_stages(const Body& steps, std::set<int>& found) {
  for (const Step& step : steps) {
    if (const Loop* const loop = step.action.as<Loop>(); loop && loop->stages > 1) found.insert(loop->stages);
    each_body(step, [&](const Body& inner) { find_stages(inner, found); });
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
      note("{} warps, as roles share the work of {}", hints.warps, warps);
    else
      note("{} warps; its tiles take {}", hints.warps, warps);
  }
  std::set<int> stages;
  for (const Role& role : roles) find_stages(role.body, stages);
  for (const Pipeline& pipeline : plan.pipelines) stages.insert(pipeline.stages);
  if (hints.stages && stages.empty() && hints.stages != 1) note("{} stages; no loop fetches ahead", hints.stages);
  for (const int has : stages)
    if (hints.stages && has != hints.stages) note("{} stages; a loop has {}", hints.stages, has);
  if (hints.occupancy && hints.occupancy != plan.blocks)
    note("{} blocks of a multiprocessor; {}", hints.occupancy,
         roles.size() > 1 ? std::string("of roles it has one")
                          : fmt::format("threads have registers for {}, or no more fit", plan.blocks));
  if (hints.cluster > 1 && plan.phases[0].schedule.split_k != SplitK::cluster)
    note("a cluster of {}; no cluster shares the rounds of this plan", hints.cluster);
}

}  // namespace tessera::internal::lowering
