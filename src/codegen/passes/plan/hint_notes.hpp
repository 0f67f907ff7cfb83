// Hints of the author: which of them a plan follows, and remarks on those that it does not.
#pragma once
#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

/// Blocks of a multiprocessor for a plan whose threads need so many registers for values: as its hints say, where that
/// leaves these registers; else 0.
int hinted_blocks(const GraphAnalysis& analysis, const Plan& plan, bool has_matmuls, int needed);
/// Remarks what of the hints it does not have, and why.
void note_hints(const GraphAnalysis& analysis, Plan& plan);

}  // namespace tessera::internal::lowering
