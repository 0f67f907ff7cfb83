// Left operands of wgmma that are computed on the way, by the threads that multiply them: from registers.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

/// One expression for each element, of tiles that a pipeline brings and of values that threads have.
struct ComputedOperand {
  std::set<Id> nodes;        ///< no steps of their own: the loop's ops of the expression, and what brings its tiles
  std::vector<Id> tiles;     ///< of those: as large as the operand, and of a load
  std::set<Id> values;       ///< what else it names
  std::string why_not = {};  ///< no such expression, in a few words; empty: it is one
  Id where = no_id;          ///< what is in its way
};
ComputedOperand computed_operand(const GraphAnalysis& analysis, Id operand, RegionId loop);

}  // namespace tessera::internal::lowering
