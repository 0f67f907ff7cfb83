// What needs no value of its own.
#pragma once
#include "codegen/schedule/layouts.hpp"

namespace tessera::internal::lowering {

/// By node.
struct Fusion {
  /// A load, or what stands between it and a product, that products read from shared memory.
  std::vector<char> absorbed;
  /// The one step on whose way an elementwise op is computed; a node that has steps of its own is its own root.
  std::vector<Id> root;
};
Fusion fuse(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls, const Layouts& layouts);

/// The live nodes by number.
std::vector<Id> by_number(const GraphAnalysis& analysis);

/// What a node's step runs over, with nothing in it: the elements it writes or combines, else those of its result.
Sweep sweep_of(const GraphAnalysis& analysis, const Layouts& layouts, Id id);

}  // namespace tessera::internal::lowering
