// Hints of the author: which of them a plan follows, and remarks on those that it does not.
#pragma once
#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

/// The hinted number of CTAs per multiprocessor, if a thread then still has `needed` registers for values; otherwise 0.
int hinted_blocks(const GraphAnalysis& analysis, const Plan& plan, bool has_matmuls, int needed);
/// Remarks on the hints that the plan does not follow, and why.
void note_hints(const GraphAnalysis& analysis, Plan& plan);

}  // namespace tessera::internal::lowering
