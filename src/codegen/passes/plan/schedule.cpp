#include <algorithm>

#include "codegen/lower/lower_atomic.hpp"
#include "codegen/passes/plan/planning.hpp"
#include "codegen/passes/plan/remarks.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/prelude/identifier.hpp"

namespace tessera::internal::lowering {
namespace {

std::pair<int, int> warp_groups(const ScheduleCandidate& candidate) {
  if (const auto* const how = std::get_if<WarpSpecializedGemm>(&candidate)) return {how->groups, how->consumer_groups};
  return {std::get<FusedMatmul>(candidate).groups, 1};
}

SplitK split_k_of(const ScheduleCandidate* candidate) {
  const auto* const how = candidate ? std::get_if<WarpSpecializedGemm>(candidate) : nullptr;
  return how ? how->split_k : SplitK::none;
}

}  // namespace

Location location_of(const GraphAnalysis& analysis, const ScheduleCandidate& candidate) {
  if (const auto* const how = std::get_if<WarpSpecializedGemm>(&candidate)) return analysis[how->matmuls[0]].location;
  return analysis[std::get<FusedMatmul>(candidate).matmuls[0].id].location;
}

bool reject_candidate(Planning& planning, std::string why, Location where) {
  planning.why_not = std::move(why);
  planning.where = where;
  ++planning.attempt;
  return false;
}

const ScheduleCandidate* candidate_of(const Planning& planning) {
  const int candidate = planning.attempts[planning.attempt].candidate;
  return candidate >= 0 ? &planning.candidates[static_cast<std::size_t>(candidate)] : nullptr;
}

Planning::Planning(const GraphAnalysis& analysis, std::vector<TileReach> reaches, bool debug)
    : analysis(analysis), reaches(std::move(reaches)), debug(debug) {
  const MatmulPlans matmuls = plan_matmuls(analysis, 1);
  has_matmuls = !matmuls.plans.empty();
  const bool tells =
      std::ranges::any_of(analysis.graph.nodes, [&](const Node& node) { return info(node.op).role == OpRole::report; });
  if (has_matmuls) {
    // Checks, prints and such atomics concern all threads of a CTA.
    const bool learns = learns_of_others(analysis), by_all = tells || learns;
    WarpSpecializedGemms warp_specialized =
        by_all ? WarpSpecializedGemms{.why_not = tells ? "the kernel checks or prints"
                                                       : "the kernel uses results or memory orders of atomics"}
               : warp_specialize(analysis);
    if (debug)  // TMA does not check the elements that it stores
      for (WarpSpecializedGemm& candidate : warp_specialized.candidates) candidate.tma_tensors.clear();
    FusedMatmuls fused = by_all ? FusedMatmuls{} : match_fused_matmul(analysis);
    const bool is_fused_matmul = !fused.why_not.empty();
    why_not = is_fused_matmul ? fused.why_not : warp_specialized.why_not;
    why_not_split = warp_specialized.why_not_split;
    const Id at = is_fused_matmul ? fused.where : warp_specialized.where;
    where = at == no_id ? analysis[matmuls.plans.begin()->first].location : analysis[at].location;
    std::ranges::move(warp_specialized.candidates, std::back_inserter(candidates));
    std::ranges::move(fused.candidates, std::back_inserter(candidates));
    if (!candidates.empty()) why_not.clear();  // it is about the other kind
    for (int candidate = 0; candidate < static_cast<int>(candidates.size()); ++candidate)
      attempts.push_back({0, 0, candidate});
    if (const int hinted = analysis.hints.warps) attempts.push_back({hinted, 128});
    for (int warps : {matmuls.warps, std::min(2 * matmuls.warps, 16)}) attempts.push_back({warps, 128});
    for (int most = 64; most >= 1; most /= 2) attempts.push_back({matmuls.warps, most});
  } else {
    const int hinted = analysis.hints.warps;
    for (int warps = hinted > 0 ? hinted : choose_warps(analysis); warps <= 32; warps *= 2)
      attempts.push_back({warps, 64});
    for (int most = 32; most >= 1; most /= 2) attempts.push_back({16, most});
  }
}

}  // namespace tessera::internal::lowering

namespace tessera::internal::plan_pass {

using namespace lowering;

// Schedules the matmuls for the current attempt: warp-specialized roles by one of the candidates, or one role; and
// remarks why.
bool schedule(Planning& planning) {
  const GraphAnalysis& analysis = planning.analysis;
  Plan& plan = planning.plan;
  plan = {};
  plan.kernel = kernel_identifier(analysis.graph.name);
  plan.author = analysis.graph.name;
  plan.debug = planning.debug;
  plan.location = analysis.graph.location;
  plan.target = analysis.target;
  plan.variant = analysis.variant;
  plan.tensors = analysis.graph.parameters;
  plan.reaches = planning.reaches;
  plan.functions = analysis.graph.functions;
  std::vector<Role>& roles = plan.phases.emplace_back().roles;
  if (const ScheduleCandidate* const candidate = candidate_of(planning)) {
    const auto [groups, consumer_groups] = warp_groups(*candidate);
    roles.push_back({.name = "producer", .warps = 4, .body = {}});
    roles.push_back({.name = "consumer", .first_warp = 4, .warps = 4 * groups, .consumer_groups = consumer_groups});
    add_remark(plan, location_of(analysis, *candidate), Remark::Status::passed, remark_kind::wgmma, "{}",
               std::visit([&](const auto& how) { return text_of(analysis, how); }, *candidate));
    if (!planning.why_not.empty())
      add_remark(plan, planning.where, Remark::Status::analysis, remark_kind::wgmma, "{}", planning.why_not);
  } else {
    roles.push_back({.name = "all", .warps = planning.attempts[planning.attempt].warps, .body = {}});
    if (!planning.why_not.empty())
      add_remark(plan, planning.where, Remark::Status::missed, remark_kind::wgmma, "{}", planning.why_not);
  }
  if (planning.has_matmuls && plan.variant.split_k != SplitK::none &&
      split_k_of(candidate_of(planning)) == SplitK::none)
    add_remark(plan, plan.location, Remark::Status::missed, remark_kind::split_k, "{}",
               planning.why_not_split.empty() ? "split-K needs a warp-specialized kernel, and enough registers"
                                              : planning.why_not_split);
  return true;
}

}  // namespace tessera::internal::plan_pass
