// A plan in the making, and the passes that make it.
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

/// How a kernel's elements are first spread: with so many warps, and at most so many registers for a value.
struct Attempt {
  int warps, most_registers;
  int candidate = -1;  ///< of those in which roles share the work; -1: one role does all
};

/// Roles that share the work.
using ScheduleCandidate = std::variant<WarpSpecializedGemm, FusedMatmul>;

/// A plan in the making.
struct Planning {
  Planning(const GraphAnalysis& analysis, std::vector<TileReach> reaches, bool debug);

  const GraphAnalysis& analysis;
  const std::vector<TileReach> reaches;  ///< those that a launch knows of
  const bool debug;                      ///< the kernel checks itself
  Plan plan;
  std::vector<Attempt> attempts;  ///< from the one that is wanted to those that take fewer registers
  std::size_t attempt = 0;
  InMemory in_memory;
  bool has_matmuls = false;
  /// Ways in which roles share the work, the best first; and why there are none, or none that fits, and what is in
  /// their way.
  std::vector<ScheduleCandidate> candidates;
  std::string why_not, why_not_split;
  Location where;
};

struct PlanPass {
  std::string_view name, what;
  /// False: the plan is to be made again from the first pass on, by what the pass has noted.
  bool (*run)(Planning&);
  std::string_view was = {};  ///< its name in version 0.3, if that was another
};
std::span<const PlanPass> plan_passes();

/// The candidate of the attempt at hand; nullptr: one role does all.
const ScheduleCandidate* candidate_of(const Planning& planning);
/// Notes why the attempt at hand cannot be had, and goes on to the next one. Returns false, as the pass then does.
bool reject_candidate(Planning& planning, std::string why, Location where);

}  // namespace tessera::internal::lowering

namespace tessera::internal::plan_pass {

/// One pass each, in a file of its own name under passes/plan. False: the passes begin again from the first.
#define PLAN_PASS(name, what, was) bool name(lowering::Planning& planning);
#include "codegen/passes.def"

}  // namespace tessera::internal::plan_pass
