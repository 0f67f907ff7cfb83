// Sums that a loop leaves with several threads: their partial sums are added up after it.
#pragma once
#include <map>

#include "codegen/schedule/matmul_plan.hpp"

namespace tessera::internal::lowering {

/// Bits of the lane and warp indices that distinguish the partial sums of a value's elements.
struct PartialSums {
  int lanes = 0, warps = 0;
};

/// Does node `id` only add to `addend`: the value that its loop carries, perhaps scaled by a factor on which all
/// holders of a partial sum agree? Then the partial sums may stay apart until the loop has ended.
bool sums_may_stay_apart(const GraphAnalysis& analysis, Id id, Id addend);

/// Values whose partial sums stay apart, by node; `layouts` are those of all nodes. These are the results of matmuls,
/// and in loops whose warps have slices of k the sums along rows and what they are added to.
std::map<Id, PartialSums> partial_sums(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls,
                                       const std::vector<Layout>& layouts);

}  // namespace tessera::internal::lowering
