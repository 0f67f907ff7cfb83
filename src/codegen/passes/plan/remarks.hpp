// Optimization remarks on a complete plan: how each statement of the kernel runs.
#pragma once
#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

/// Appends remarks on the steps of a plan: how tiles are accessed and copied, which instructions run matmuls, and which
/// memory holds what; and why a better form was not possible. Other passes have already remarked on their own
/// decisions.
void remark_steps(const GraphAnalysis& analysis, Plan& plan);

/// The author's location of what a label names.
Location location_of(const GraphAnalysis& analysis, const Label& label);

}  // namespace tessera::internal::lowering
