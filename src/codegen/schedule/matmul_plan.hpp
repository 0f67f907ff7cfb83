// How each matmul of a kernel is computed when all warps share the work.
#pragma once
#include <map>

#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

/// The kernel's first matmul; no_id: it has none.
Id first_matmul(const GraphAnalysis& analysis);

struct MatmulPlan {
  Matmul matmul;
  Source a, b;
  Layout layout;  ///< of the result
};

/// The kind of each matmul, its warps and the layout of its result; for a kernel of at least `least_warps` warps,
/// unless rows of scores must stay with their warp.
struct MatmulPlans {
  std::map<Id, MatmulPlan> plans;
  int warps = 0;
};
MatmulPlans plan_matmuls(const GraphAnalysis& analysis, int least_warps);

}  // namespace tessera::internal::lowering
