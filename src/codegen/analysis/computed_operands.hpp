// Left operands of wgmma that the consumer threads compute on the way: they come from registers.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

/// One expression for each element, over tiles from a pipeline and values in registers.
struct ComputedOperand {
  std::set<Id> nodes;        ///< without steps of their own: the expression's ops in the loop, and its loads of tiles
  std::vector<Id> tiles;     ///< loads among them that are as large as the operand
  std::set<Id> values;       ///< other values that the expression names
  std::string why_not = {};  ///< why there is no such expression; empty: there is one
  Id where = no_id;          ///< the node that prevents it
};
ComputedOperand computed_operand(const GraphAnalysis& analysis, Id operand, RegionId loop);

}  // namespace tessera::internal::lowering
