// The consumer roles: they multiply the tiles in the pipelines, and do the rest of the kernel for each grid tile.
#pragma once
#include "codegen/lower/sm90/warp_role.hpp"

namespace tessera::internal::lowering {

RoleRules consumer_rules(const GraphAnalysis& analysis, const WarpSpecialization& how);

/// Matmuls that only add to accumulators: a k-iteration begins before the previous one's have ended. An epilogue
/// follows.
void lower_accumulating_consumer(const MatmulPipelines& pipelines, GraphLowering& graph);
/// Matmuls that feed one another, with ops between them.
void lower_fused_matmul_consumer(const MatmulPipelines& pipelines, GraphLowering& graph);

/// The base of both.
class ConsumerRole : protected WarpRole {
 protected:
  ConsumerRole(const MatmulPipelines& pipelines, GraphLowering& graph) : WarpRole(pipelines, graph, "consumer") {}

  /// The wgmma of a matmul, without its result, and without a left operand that comes from registers.
  Wgmma wgmma_of(const WgmmaOperands& matmul) const;
  const WgmmaOperands& matmul_of(Id id) const { return *std::ranges::find(how_.matmuls, id, &WgmmaOperands::id); }
  /// The role's nodes in a k-iteration; `matmul(id)` lowers a matmul, and `node(id)` another node.
  template <class Matmul, class Other>
  void k_iteration(const Matmul& matmul, const Other& node) const {
    for (const Id id : analysis_.order[steps_.node(how_.loop).body()])
      if (graph_.does(id)) steps_.node(id).op == Op::mma ? matmul(id) : node(id);
  }
};

}  // namespace tessera::internal::lowering
