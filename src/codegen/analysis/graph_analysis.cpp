#include <algorithm>

#include "codegen/analysis/graph_analysis.hpp"
#include "graph/views.hpp"

namespace tessera::internal::lowering {

GraphAnalysis::GraphAnalysis(const Graph& graph, const Variant& variant, const Target& target)
    : graph(graph),
      variant(variant),
      target(target),
      hints(hints_for(graph.hints, target.arch.name())),
      order(schedule(graph)),
      number(graph.nodes.size(), -1),
      users(graph.nodes.size()),
      owner(graph.regions.size(), no_id),
      storage_class(graph.nodes.size()) {
  int next = 0;
  // Nodes are numbered in the order of the graph's text: a region comes right after its owner.
  const auto walk = [&](const auto& self, RegionId region) -> void {
    for (Id id : order[region]) {
      number[id] = next++;
      storage_class[id] = region;
      for (Id in : graph[id].in) users[in].push_back(id);
      if (!has_region(graph[id].op)) continue;
      const RegionId inner = graph[id].body();
      owner[inner] = id;
      self(self, inner);
      for (Id yield : graph.regions[inner].yields) users[yield].push_back(id);
    }
  };
  walk(walk, 0);
}

bool GraphAnalysis::in_region(Id id, RegionId region) const {
  RegionId at = graph[id].region;
  while (at > region) at = graph.regions[at].parent;
  return at == region;
}

Id GraphAnalysis::index_of(Id id, int axis) const {
  const Node& node = graph[id];
  const int first = repeated_operand(node.op);
  if (by_elements(node.op)) return no_id;
  if (info(node.op).in.kind[first] == OperandKind::further_indices) --axis;  // axis 0 is that of the rows
  return axis < 0 ? no_id : node.in[static_cast<std::size_t>(first + axis)];
}

// Operands are visited before their users.
std::vector<char> GraphAnalysis::uniform_values(const std::function<bool(Id, RegionId)>& given) const {
  std::vector<char> known(graph.nodes.size());
  for (const auto& region : order)
    for (Id id : region) {
      const Node& at = graph[id];
      const auto is_known = [&](Id one) { return known[one] || given(one, at.region); };
      const bool follows = is_view(at.op) || at.op == Op::extent || at.op == Op::scalar || at.op == Op::constant ||
                           (is_elementwise(at.op) && at.shape.rank() == 0);
      known[id] = is_known(id) || (follows && std::ranges::all_of(at.in, is_known));
    }
  return known;
}

GraphAccess GraphAnalysis::access(Id id) const {
  const Node& node = graph[id];
  GraphAccess access;
  const Id view = node.in[static_cast<std::size_t>(view_operand(node.op))];
  const Node& tensor = graph[base_view(graph, view)];
  access.parameter = static_cast<int>(tensor.parameter());
  if (tensor.op == Op::member) access.member = tensor.in[0];
  const int rank = graph[view].shape.rank();
  access.axes.resize(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(i)];
    axis.extent = by_elements(node.op) ? 1 : node.shape[i];
    axis.index = index_of(id, i);
    if (axis.index != no_id) {
      const Node& at = graph[axis.index];
      axis.positive = at.op == Op::block || is_counter(axis.index) || (at.op == Op::constant && at.number().i32 >= 0);
    }
  }
  const std::vector<ViewAxis> of_view = view_axes(graph, view);
  for (std::size_t i = 0; i < access.axes.size(); ++i) {
    GraphAccess::Axis& axis = access.axes[i];
    const ViewAxis& from = of_view[i];
    axis.tensor_axis = from.axes.back();
    axis.viewed = {{from.axes.begin(), from.axes.end() - 1}, from.factor, from.windows, from.within};
    for (std::size_t k = from.slices.size(); k-- > 0;)
      axis.slices.push_back({from.slices[k].start, from.slices[k].extent, from.slices[k].step});
  }
  const int contiguous_axis = variant.tensors[static_cast<std::size_t>(access.parameter)].contiguous_axis;
  for (int i = 0; i < rank; ++i) {
    const GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(i)];
    std::int64_t step = axis.viewed.factor;
    for (const GraphAccess::Slice& slice : axis.slices) step *= slice.step;
    if (axis.tensor_axis == contiguous_axis && step == 1 && axis.index != no_id) access.fast = i;
  }
  if (is_read(node.op)) access.padding = node.bits();
  access.vector = vector_of(id, access);
  return access;
}

// Vectorization: the vector width of an access, from alignment, contiguity and divisibility (Triton's axis info).
int GraphAnalysis::vector_of(Id id, const GraphAccess& access) const {
  if (access.fast < 0 || is_atomic(graph[id].op)) return 1;
  const TensorClass& tensor = variant.tensors[static_cast<std::size_t>(access.parameter)];
  const GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(access.fast)];
  if (!axis.slices.empty() || !axis.viewed.windows.empty()) return 1;
  int vector = std::min(tensor.alignment, tensor.row_alignment) / info(graph[id].type).bytes;
  while (vector > 1 && (axis.extent % vector != 0 || axis.viewed.within % vector != 0)) vector /= 2;
  // Windows of the same axis begin at whole vectors.
  for (const GraphAccess::Axis& other : access.axes)
    while (&other != &axis && other.tensor_axis == axis.tensor_axis && vector > 1 && other.viewed.factor % vector != 0)
      vector /= 2;
  return std::max(vector, 1);
}

bool multiplies(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op == Op::mma; });
}

bool multiplies_fp8(const Graph& graph) {
  return std::ranges::any_of(graph.nodes,
                             [&](const Node& node) { return node.op == Op::mma && is_fp8(graph[node.in[0]].type); });
}

}  // namespace tessera::internal::lowering
