#include "codegen/schedule/cta.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::internal::lowering {

std::string CtaSchedule::text(const GraphAnalysis&) const {
  return fmt::format("{} warps, at most {} registers for a value", warps_, most_registers_);
}

std::vector<Role> CtaSchedule::roles() const { return {{.name = "all", .warps = warps_, .body = {}}}; }

MatmulPlans CtaSchedule::matmuls(const GraphAnalysis& analysis) const {
  return first_matmul(analysis) != no_id ? plan_matmuls(analysis, warps_) : MatmulPlans{.plans = {}, .warps = warps_};
}

}  // namespace tessera::internal::lowering

namespace tessera::internal::schedule_pattern {

using namespace lowering;

// The hinted number of warps first, then the rule's and twice as many; at last with large values in memory.
ScheduleMatch cta_matmul(const GraphAnalysis& analysis, bool) {
  ScheduleMatch match;
  if (first_matmul(analysis) == no_id) return match;
  const MatmulPlans matmuls = plan_matmuls(analysis, 1);
  const auto add = [&](int warps, int most) { match.candidates.push_back(std::make_shared<CtaSchedule>(warps, most)); };
  if (const int hinted = analysis.hints.warps) add(hinted, 128);
  for (const int warps : {matmuls.warps, std::min(2 * matmuls.warps, 16)}) add(warps, 128);
  for (int most = 64; most >= 1; most /= 2) add(matmuls.warps, most);
  return match;
}

ScheduleMatch rows(const GraphAnalysis& analysis, bool) {
  ScheduleMatch match;
  if (first_matmul(analysis) != no_id) return match;
  const auto add = [&](int warps, int most) { match.candidates.push_back(std::make_shared<CtaSchedule>(warps, most)); };
  const int hinted = analysis.hints.warps;
  for (int warps = hinted > 0 ? hinted : choose_warps(analysis); warps <= 32; warps *= 2) add(warps, 64);
  for (int most = 32; most >= 1; most /= 2) add(16, most);
  return match;
}

}  // namespace tessera::internal::schedule_pattern
