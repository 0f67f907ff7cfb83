// Left operands of wgmma that the consumer threads compute on the way: they come from registers.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

/// A load in the expression of an operand, perhaps transposed.
struct ReadTile {
  Id tile = no_id;
  Id read_as = no_id;     ///< what the expression reads: the tile, or the cast of its 8-bit integers to reals
  bool repeated = false;  ///< it has half as many columns as the operand: each is that of two neighbors
};

/// One expression for each element, over tiles from a pipeline and values in registers.
struct ComputedOperand {
  std::set<Id> nodes;           ///< without steps of their own: the expression's ops, and its loads of tiles
  std::vector<ReadTile> tiles;  ///< of these loads
  std::set<Id> values;          ///< other values that the expression names
  std::string why_not = {};  ///< why there is no such expression; empty: there is one
  Id where = no_id;          ///< the node that prevents it
};
/// The tile [m,k] whose elements a tile [m,2 k] has twice each, side by side; no_id: it is none.
Id repeated(const Graph& graph, Id id);
ComputedOperand computed_operand(const GraphAnalysis& analysis, Id operand, RegionId loop);

}  // namespace tessera::internal::lowering
