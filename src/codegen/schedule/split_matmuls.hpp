// Graph to graph: splits matmuls whose operands are too large for shared memory.
#pragma once
#include <optional>

#include "codegen/target/target.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// The graph with matmuls computed in strips of k where their operand tiles do not fit into a CTA's shared memory on
/// `target`; nullopt if all fit. Parameters, grid and texts do not change; results may differ by the order of
/// additions.
std::optional<Graph> split_matmuls(const Graph& graph, const Target& target);

}  // namespace tessera::internal
