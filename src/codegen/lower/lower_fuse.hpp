// Nodes that need no value of their own.
#pragma once
#include "codegen/schedule/layouts.hpp"

namespace tessera::internal::lowering {

/// By node.
struct Fusion {
  /// A load, or a node between it and a matmul, that matmuls read from shared memory.
  std::vector<char> absorbed;
  /// The step in which an elementwise op is computed; a node that has steps of its own is its own root.
  std::vector<Id> root;
};
Fusion fuse(const GraphAnalysis& analysis, const std::map<Id, MatmulPlan>& matmuls, const Layouts& layouts);

/// The live nodes in the order of their numbers.
std::vector<Id> by_number(const GraphAnalysis& analysis);

/// An empty sweep over the elements that a node's step visits: those that it writes or combines, otherwise those of its
/// result.
Sweep sweep_of(const GraphAnalysis& analysis, const Layouts& layouts, Id id);

}  // namespace tessera::internal::lowering
