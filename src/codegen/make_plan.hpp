// From a graph to a plan: runs the passes of passes.def.
#pragma once
#include <functional>
#include <string_view>

#include "codegen/generate_options.hpp"
#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::internal::codegen {

/// Functions that see how a plan is made. Any of them may be empty.
struct PlanObserver {
  /// A search for a schedule begins, for a form of the graph. If it fails, another one begins.
  std::function<void(const lowering::GraphAnalysis& analysis)> begins = {};
  std::function<void(const lowering::PlanPass& pass, const Plan& plan)> after_pass = {};
  /// A pass rejected the schedule: all run again, with the next one.
  std::function<void()> rejected = {};
};

/// The plan of a graph for a class of launches.
Plan make_plan(const Graph& graph, const Variant& variant, Arch arch, const GenerateOptions& options,
               const PlanObserver& observer = {});

}  // namespace tessera::internal::codegen
