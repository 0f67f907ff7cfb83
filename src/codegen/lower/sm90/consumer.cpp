#include "codegen/lower/sm90/consumer.hpp"

namespace tessera::internal::lowering {

namespace {

// Left operands that are computed in wgmma's layout on the way, by the step that loads their registers.
void skip_left_operands(const GraphAnalysis& analysis, const WarpSpecialization& how, RoleRules& rules) {
  for (const WgmmaOperands& matmul : how.matmuls) {
    const Id left = analysis[matmul.id].in[0];
    const auto multiplies = [&](Id user) { return analysis[user].op == Op::mma && analysis[user].in[0] == left; };
    // A value from before the loop stays in its registers.
    const bool anew = analysis[left].region == analysis[matmul.id].region;
    if (matmul.left.tile < 0 && anew && is_elementwise(analysis[left].op) &&
        std::ranges::all_of(analysis.users[left], multiplies))
      rules.skipped[left] = 1;
  }
}

}  // namespace

// Beside the accumulators, a thread may have no registers to hold more than a few elements of a tile. Values that each
// k-iteration needs stay in registers.
RoleRules consumer_rules(const GraphAnalysis& analysis, const WarpSpecialization& how) {
  RoleRules rules{.skipped = std::vector<char>(analysis.graph.nodes.size()), .stages_operands = false};
  if (how.is_fused_matmul()) {
    skip_left_operands(analysis, how, rules);
    return rules;
  }
  const Id matmul = how.matmuls[0].id;
  rules.accumulators = matmul;
  for (const WgmmaOperands& one : how.matmuls)
    if (const Id sums = analysis[one.id].in[2]; !how.promotes() && starts_from_zeros(analysis, how.loop, sums))
      rules.uninitialized.insert(sums);
  for (Id id = 0; id < static_cast<Id>(analysis.graph.nodes.size()); ++id) {
    const auto computes = [&](const auto& one) { return one.second.nodes.contains(id); };
    rules.skipped[id] = std::ranges::any_of(how.computed, computes);
    const auto needs = [&](const auto& one) { return one.second.values.contains(id); };
    const bool large = analysis[id].shape.size() > 2 * 128 * std::int64_t{how.groups} / 8;
    if (large && is_read(analysis[id].op) && std::ranges::none_of(how.computed, needs) &&
        !(how.reads_ahead && is_read_ahead(analysis, how, id)))
      rules.read_where_used.insert(id);
  }
  return rules;
}

Wgmma ConsumerRole::wgmma_of(const WgmmaOperands& matmul) const {
  const Matmul& plan = pipelines_.matmul(matmul.id);
  Wgmma wgmma{.out = {},
              .a = {},
              .b = pipelines_.tile(matmul.right).buffer,
              .a_state = {},
              .b_state = state_of(matmul.right.tile),
              .type = plan.type,
              .m = plan.m,
              .n = plan.n,
              .k = plan.k,
              .b_k_major = matmul.right.k_major};
  if (matmul.left.tile < 0) return wgmma;
  wgmma.a = pipelines_.tile(matmul.left).buffer;
  wgmma.a_state = state_of(matmul.left.tile);
  wgmma.a_k_major = matmul.left.k_major;
  return wgmma;
}

}  // namespace tessera::internal::lowering
