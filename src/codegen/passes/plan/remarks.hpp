// Optimization remarks on a complete plan: how each statement of the kernel runs.
#pragma once
#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

/// Appends to the plan's remarks what its steps are: how tiles are accessed and copied, what products are made of, what
/// lies in which memory; and why a better form was not taken. What other passes decide they have remarked themselves.
void remark_steps(const GraphAnalysis& analysis, Plan& plan);

/// The author's place of what a label names.
Location location_of(const GraphAnalysis& analysis, const Label& label);

}  // namespace tessera::internal::lowering
