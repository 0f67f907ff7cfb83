// Which thread holds which element of each tile.
#pragma once
#include <map>
#include <vector>

#include "codegen/schedule/partial_sums.hpp"

namespace tessera::internal::lowering {

/// A layout for every value: those of matmuls first, then those that follow from them, then free choices.
struct Layouts {
  int warps = 0;
  std::vector<Layout> of;             ///< by node
  bool transposed = false;            ///< a tile is read along one axis and written along another
  std::map<Id, PartialSums> partial;  ///< values whose partial sums are added up after their loop
};
Layouts choose_layouts(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls, int warps);
/// The number of warps for a kernel without matmuls.
int choose_warps(const GraphAnalysis& analysis);

}  // namespace tessera::internal::lowering
