// Graph to graph: products with operands too large for shared memory.
#pragma once
#include <optional>

#include "codegen/target/target.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// The graph with products computed in strips of k where the tiles they are given do not fit into a block's shared
/// memory of `target`; nothing if all fit. Parameters, grid and texts stay as they are, results up to the order of
/// sums.
std::optional<Graph> split_matmuls(const Graph& graph, const Target& target);

}  // namespace tessera::internal
