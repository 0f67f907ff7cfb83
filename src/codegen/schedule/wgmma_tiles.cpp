#include "codegen/schedule/wgmma_tiles.hpp"

#include <fmt/format.h>

namespace tessera::internal::lowering {

bool is_k_major(const GraphAccess& access, int other) { return access.fast != other; }

std::string why_no_panels(int rows, int columns, ElementType type) {
  if (columns * info(type).bytes % panel_bytes == 0 && rows % 8 == 0) return {};
  return fmt::format("[{},{}] {} cannot be divided into panels of 8 rows of 128 bytes", rows, columns, name(type));
}

MatmulPlan wgmma_plan(const GraphAnalysis& analysis, Id matmul, int groups, bool left_from_registers) {
  const Node &node = analysis[matmul], &left = analysis[node.in[0]];
  MatmulPlan plan;
  if (!left_from_registers) plan.a = find_source(analysis.graph, node.in[0]);
  plan.b = find_source(analysis.graph, node.in[1]);
  plan.matmul.kind = MatmulKind::mma_sync;
  plan.matmul.type = left.type;
  plan.matmul.m = node.shape[0];
  plan.matmul.n = node.shape[1];
  plan.matmul.k = left.shape[1];
  plan.layout = wgmma_accumulator_layout(node.shape, groups);
  if (left_from_registers) plan.matmul.layout_a = wgmma_operand_layout(left.shape, groups, left.type);
  return plan;
}

bool is_zeros(const GraphAnalysis& analysis, Id id) {
  while (analysis[id].op == Op::broadcast) id = analysis[id].in[0];
  return analysis[id].op == Op::constant && analysis[id].bits() == 0;
}

}  // namespace tessera::internal::lowering
