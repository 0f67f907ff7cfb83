// A plan under construction, and the passes that make it.
#pragma once
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "codegen/lower/lower.hpp"
#include "codegen/schedule/fused_matmul.hpp"
#include "codegen/schedule/warp_specialization.hpp"

namespace tessera::internal::lowering {

/// An attempt at a plan: its number of warps, and the maximum of registers for a value.
struct Attempt {
  int warps, most_registers;
  int candidate = -1;  ///< index of a warp-specialized candidate; -1: one role does everything
};

/// Warp-specialized schedules.
using ScheduleCandidate = std::variant<WarpSpecializedGemm, FusedMatmul>;

/// A plan under construction.
struct Planning {
  Planning(const GraphAnalysis& analysis, std::vector<TileReach> reaches, bool debug);

  const GraphAnalysis& analysis;
  const std::vector<TileReach> reaches;  ///< those that a launch checks
  const bool debug;                      ///< the kernel checks itself
  Plan plan;
  std::vector<Attempt> attempts;  ///< from the preferred one to those that take fewer registers
  std::size_t attempt = 0;
  InMemory in_memory;
  bool has_matmuls = false;
  /// Warp-specialized candidates, the best first; and why there are none, or none that fits, and what prevents them.
  std::vector<ScheduleCandidate> candidates;
  std::string why_not, why_not_split;
  Location where;
};

struct PlanPass {
  std::string_view name, what;
  /// Returns false if the passes must run again from the first, with what the pass has recorded.
  bool (*run)(Planning&);
  std::string_view was = {};  ///< its name in version 0.3, if that was another
};
std::span<const PlanPass> plan_passes();

/// The candidate of the current attempt; nullptr: one role does everything.
const ScheduleCandidate* candidate_of(const Planning& planning);
/// The author's place of a candidate's first matmul.
Location location_of(const GraphAnalysis& analysis, const ScheduleCandidate& candidate);
/// Records why the current attempt is impossible, and goes on to the next one. Returns false, for the pass to return.
bool reject_candidate(Planning& planning, std::string why, Location where);

}  // namespace tessera::internal::lowering

namespace tessera::internal::plan_pass {

/// One pass each, in a file of its own name under passes/plan. False: the passes start again from the first.
#define PLAN_PASS(name, what, was) bool name(lowering::Planning& planning);
#include "codegen/passes.def"

}  // namespace tessera::internal::plan_pass
