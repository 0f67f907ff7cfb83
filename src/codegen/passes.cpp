#include "codegen/passes.hpp"

#include "codegen/passes/plan/planning.hpp"

namespace tessera::internal {

std::span<const Pass> passes() {
  static constexpr Pass table[] = {
#define GRAPH_PASS(name, what) {#name, what, name},
#include "codegen/passes.def"
  };
  return table;
}

Graph run_passes(Graph graph) {
  for (const Pass& pass : passes()) {
    graph = pass.run(graph);
    verify(graph, pass.name);
  }
  return graph;
}

std::span<const lowering::PlanPass> lowering::plan_passes() {
  static constexpr PlanPass table[] = {
#define PLAN_PASS(name, what, was) {#name, what, plan_pass::name, was},
#include "codegen/passes.def"
  };
  return table;
}

}  // namespace tessera::internal
