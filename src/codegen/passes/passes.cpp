#include "codegen/passes/passes.hpp"

namespace tessera::internal {

std::span<const Pass> passes() {
  static constexpr Pass table[] = {
      {"hoist_reshapes", "adds axes of extent 1 ahead of ops, not behind them", hoist_reshapes},
      {"promote_fp8", "multiplies factors of 8 bits as f16, which holds them", promote_fp8},
      {"constant_fold", "computes what is constant, and drops what changes nothing", constant_fold},
      // After constant_fold, which makes indices equal that were written differently.
      {"cse_loads", "reads an InOut once where nothing wrote in between", cse_loads},
      // Last: constant_fold and cse_loads leave behind what they replaced.
      {"dce", "drops what no effect depends on", dce},
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

}  // namespace tessera::internal
