#include <algorithm>

#include "codegen/lower/lowering.hpp"

namespace tessera::lowering {

Facts::Facts(const Graph& graph, const Variant& variant, const Target& target)
    : graph(graph),
      variant(variant),
      target(target),
      order(schedule(graph)),
      number(graph.nodes.size(), -1),
      users(graph.nodes.size()),
      owner(graph.regions.size(), no_id) {
  int next = 0;
  // Nodes are numbered as they are printed: a region right behind its owner.
  const auto walk = [&](const auto& self, RegionId region) -> void {
    for (Id id : order[region]) {
      number[id] = next++;
      for (Id in : graph[id].in) users[in].push_back(id);
      if (graph[id].op != Op::loop && graph[id].op != Op::branch) continue;
      const auto inner = static_cast<RegionId>(graph[id].attr[0]);
      owner[inner] = id;
      self(self, inner);
      for (Id yield : graph.regions[inner].yields) users[yield].push_back(id);
    }
  };
  walk(walk, 0);
}

bool Facts::in_region(Id id, RegionId region) const {
  RegionId at = graph[id].region;
  while (at > region) at = graph.regions[at].parent;
  return at == region;
}

Id Facts::index_of(Id id, int axis) const {
  const Node& node = graph[id];
  switch (node.op) {
    case Op::load:
      return node.in[static_cast<std::size_t>(axis) + 1];
    case Op::gather:
      return axis == 0 ? no_id : node.in[static_cast<std::size_t>(axis) + 1];
    case Op::scatter:
      return axis == 0 ? no_id : node.in[static_cast<std::size_t>(axis) + 2];
    default:
      return node.in[static_cast<std::size_t>(axis) + 2];
  }
}

GraphAccess Facts::access(Id id) const {
  const Node& node = graph[id];
  GraphAccess access;
  Id view = node.in[static_cast<std::size_t>(view_operand(node.op))];
  access.parameter = view_parameter(graph, view);
  access.axes.resize(static_cast<std::size_t>(node.shape.rank()));
  for (int i = 0; i < node.shape.rank(); ++i) {
    GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(i)];
    axis.tensor_axis = i;
    axis.extent = node.shape[i];
    axis.index = index_of(id, i);
    if (axis.index != no_id) {
      const Node& at = graph[axis.index];
      axis.positive = at.op == Op::block || (at.op == Op::argument && at.attr[0] == 0) ||
                      (at.op == Op::constant && decode(at.type, at.attr[0]).i32 >= 0);
    }
  }
  for (; graph[view].op != Op::tensor; view = graph[view].in[0]) {
    const Node& at = graph[view];
    for (GraphAccess::Axis& axis : access.axes) {
      if (at.op == Op::permute_view)
        axis.tensor_axis = static_cast<int>(at.attr[static_cast<std::size_t>(axis.tensor_axis)]);
      else if (axis.tensor_axis == at.attr[0])
        axis.slices.push_back({at.in[1], at.in[2]});
    }
  }
  const int unit_axis = variant.tensors[static_cast<std::size_t>(access.parameter)].unit_axis;
  for (int i = 0; i < node.shape.rank(); ++i) {
    const GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(i)];
    if (axis.tensor_axis == unit_axis && axis.index != no_id) access.fast = i;
  }
  if (node.op == Op::load || node.op == Op::gather) access.padding = node.attr[0];
  access.vector = vector_of(id, access);
  return access;
}

int Facts::vector_of(Id id, const GraphAccess& access) const {
  if (access.fast < 0 || graph[id].op == Op::atomic_add || graph[id].op == Op::scatter) return 1;
  const TensorClass& tensor = variant.tensors[static_cast<std::size_t>(access.parameter)];
  const GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(access.fast)];
  if (!axis.slices.empty() || !(tensor.divisible >> axis.tensor_axis & 1)) return 1;
  int vector = tensor.alignment / info(graph[id].type).bytes;
  while (vector > 1 && axis.extent % vector != 0) vector /= 2;
  return std::max(vector, 1);
}

bool only_unit_axes(const Shape& from, const Shape& to) {
  int i = 0, j = 0;
  for (;;) {
    while (i < from.rank() && from[i] == 1) ++i;
    while (j < to.rank() && to[j] == 1) ++j;
    if (i == from.rank() || j == to.rank()) return i == from.rank() && j == to.rank();
    if (from[i++] != to[j++]) return false;
  }
}

}  // namespace tessera::lowering
