// Graph to graph: computes a b as the transpose of b^T a^T. wgmma takes its left operand from registers, too, so that
// the right operand of the author's matmul may be computed on the way, or be transposed while it is read.
#pragma once
#include <optional>

#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal {

/// The graph with the operands of its matmuls swapped, if these only add to accumulators that a loop carries, and wgmma
/// cannot read a right operand from shared memory as it is in global memory; otherwise nullopt. Parameters, grid and
/// texts do not change, nor do results: the products of an element are added in the same order. Nodes that it replaces
/// remain.
std::optional<Graph> swap_operands(const lowering::GraphAnalysis& analysis);

}  // namespace tessera::internal
