#include "codegen/schedule/wgmma_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::internal::lowering {

OperandAxes operand_axes(const GraphAnalysis& analysis, const Source& source, bool left) {
  const Axes &k = source.axes[left ? 1 : 0], &other = source.axes[left ? 0 : 1];
  return {k, other, std::ranges::count(other, analysis.access(source.load).fast) == 0};
}

std::string why_no_panels(const GraphAnalysis& analysis, Id access, const OperandAxes& axes) {
  constexpr int most_of_box = 256;
  const Shape& shape = analysis[access].shape;
  const int parameter = analysis.access(access).parameter;
  const ElementType type = analysis.graph.parameters[static_cast<std::size_t>(parameter)].type;
  const int rows = merged_extent(shape, axes.rows()), columns = merged_extent(shape, axes.columns());
  if (axes.columns().size() != 1)
    return fmt::format("a reshape makes the columns of [{},{}] of several axes of {}", rows, columns, to_string(shape));
  if (columns * info(type).bytes % panel_bytes != 0 || rows % 8 != 0)
    return fmt::format("[{},{}] {} cannot be divided into panels of 8 rows of 128 bytes", rows, columns, name(type));
  for (const int axis : axes.rows())
    if (shape[axis] > most_of_box) return fmt::format("{} rows are more than a TMA box has", shape[axis]);
  return {};
}

bool is_addressed(const GraphAnalysis& analysis, const GraphAccess& access, int columns) {
  const auto whole = [](const GraphAccess::Axis& axis) { return axis.slices.empty() && axis.is_tensors(); };
  return analysis.variant.tensors[static_cast<std::size_t>(access.parameter)].tma_addressable &&
         access.fast == columns && std::ranges::all_of(access.axes, whole);
}

// TMA converts f32 to tf32. Only 16-bit types may run along m or n.
std::string why_not_as_it_is(const GraphAnalysis& analysis, Id operand, bool left) {
  const Source source = find_source(analysis.graph, operand);
  if (source.load == no_id) return why_no_source(analysis.graph, operand);
  const ElementType type = analysis[operand].type, stored = analysis[source.load].type;
  const bool rounds = type == ElementType::tf32 && stored == ElementType::f32;
  if ((stored != type && !rounds) || std::ranges::any_of(source.casts, [&](ElementType to) { return to != type; }))
    return fmt::format("is {} in memory", name(stored));
  if (info(type).bytes != 2 && !operand_axes(analysis, source, left).k_major)
    return fmt::format("is not contiguous along k, as wgmma requires for {}", name(type));
  return {};
}

bool only_accumulates(const GraphAnalysis& analysis, Id matmul) {
  const Node& at = analysis[matmul];
  const Node& sums = analysis[at.in[2]];
  return analysis.in_loop(matmul) && sums.op == Op::argument && sums.region == at.region && sums.position() > 0 &&
         analysis.graph.regions[at.region].yields[sums.position() - 1] == matmul &&
         analysis.users[at.in[2]].size() == 1 && analysis.users[matmul].size() == 1;
}

MatmulPlan wgmma_plan(const GraphAnalysis& analysis, Id matmul, int groups, bool left_from_registers, RowOrder order) {
  const Node &node = analysis[matmul], &left = analysis[node.in[0]];
  MatmulPlan plan;
  if (!left_from_registers) plan.a = find_source(analysis.graph, node.in[0]);
  plan.b = find_source(analysis.graph, node.in[1]);
  plan.matmul.kind = MatmulKind::mma_sync;
  plan.matmul.type = left.type;
  plan.matmul.m = node.shape[0];
  plan.matmul.n = node.shape[1];
  plan.matmul.k = left.shape[1];
  plan.layout = wgmma_accumulator_layout(node.shape, groups, order);
  if (left_from_registers) plan.matmul.layout_a = wgmma_operand_layout(left.shape, groups, left.type, order);
  return plan;
}

bool is_zeros(const GraphAnalysis& analysis, Id id) {
  while (analysis[id].op == Op::broadcast || analysis[id].op == Op::permute) id = analysis[id].in[0];
  return analysis[id].op == Op::constant && analysis[id].bits() == 0;
}

}  // namespace tessera::internal::lowering
