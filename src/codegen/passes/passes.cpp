#include "codegen/passes/passes.hpp"

namespace tessera::internal {

std::span<const Pass> passes() {
  static constexpr Pass table[] = {
      {"reshape", "adds axes of extent 1 ahead of ops, not behind them", lift_reshapes},
      {"widen", "multiplies factors of 8 bits as f16, which holds them", widen_factors},
      {"fold", "computes what is constant, and drops what changes nothing", fold},
      // After fold, which makes indices equal that were written differently.
      {"common", "reads an InOut once where nothing wrote in between", eliminate_common},
      // Last: fold and common leave behind what they replaced.
      {"dead", "drops what no effect depends on", eliminate_dead},
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
