// Graph to graph: what makes a graph smaller or simpler without changing what it means.
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

/// The passes in the order they run. This table is the only place that knows it.
std::span<const Pass> passes();

/// Runs them all, each followed by the verifier.
Graph run_passes(Graph graph);

/// One pass each, in a file of its own name.
Graph hoist_reshapes(const Graph& graph);
Graph promote_fp8(const Graph& graph);
Graph constant_fold(const Graph& graph);
Graph cse_loads(const Graph& graph);
Graph dce(const Graph& graph);

}  // namespace tessera::internal
