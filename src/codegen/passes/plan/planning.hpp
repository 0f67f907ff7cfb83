// A plan under construction, and the passes that make it.
#pragma once
#include <set>
#include <span>

#include "codegen/schedule/search.hpp"

namespace tessera::internal::lowering {

/// A plan under construction.
struct Planning {
  const GraphAnalysis& analysis;
  const std::vector<TileReach> reaches;  ///< those that a launch checks
  const bool debug;                      ///< the kernel checks itself
  const bool in_sequence = false;        ///< see Plan::in_sequence
  ScheduleSearch search{analysis, debug};
  Plan plan = {};
  std::set<Id> left_in_memory = {};  ///< matmuls whose left operands cannot be in registers
};

struct PlanPass {
  std::string_view name, what;
  /// Returns false if it rejected the schedule: then the passes run from the first, with the next one.
  bool (*run)(Planning&);
  std::string_view was = {};  ///< its name in version 0.3, if that was another
};
std::span<const PlanPass> plan_passes();

}  // namespace tessera::internal::lowering

namespace tessera::internal::plan_pass {

/// One pass each, in a file of its own name under passes/plan.
#define PLAN_PASS(name, what, was) bool name(lowering::Planning& planning);
#include "codegen/passes.def"

}  // namespace tessera::internal::plan_pass
