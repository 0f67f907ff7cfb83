// Graph passes: each makes a graph smaller or simpler and does not change its meaning.
#pragma once
#include <span>
#include <string_view>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {

struct Pass {
  std::string_view name;
  std::string_view what;
  Graph (*run)(const Graph& graph);
};

/// The passes in the order in which they run, as passes.def lists them.
std::span<const Pass> passes();

/// Runs all of them, each followed by the verifier.
Graph run_passes(Graph graph);

/// One pass each, in a file of its own name under passes/graph.
#define GRAPH_PASS(name, what) Graph name(const Graph& graph);
#include "codegen/passes.def"

}  // namespace tessera::internal
