// source: the load behind an operand of a product.
#include <algorithm>

#include "codegen/lower/lowering.hpp"

namespace tessera::lowering {

int axis_below(const Graph& graph, const Node& node, int axis) {
  if (axis < 0 || node.op == Op::cast) return axis;
  if (node.op == Op::permute) return static_cast<int>(node.permutation()[static_cast<std::size_t>(axis)]);
  if (node.shape[axis] == 1) return -1;
  const Shape& from = graph[node.in[0]].shape;
  int nth = 0;  // among the axes that are longer than 1
  for (int i = 0; i < axis; ++i) nth += node.shape[i] != 1;
  int below = 0;
  while (from[below] == 1 || nth-- > 0) ++below;
  return below;
}

Source find_source(const Graph& graph, Id operand) {
  Source source;
  int axis[2] = {0, 1};
  for (Id id = operand;; id = graph[id].in[0]) {
    const Node& node = graph[id];
    switch (node.op) {
      case Op::cast:
        source.casts.push_back(node.type);
        break;
      case Op::permute:
        break;
      case Op::reshape:
        if (!only_unit_axes(graph[node.in[0]].shape, node.shape)) return {};
        break;
      case Op::load:
        if (node.ordered || node.bits() != 0) return {};
        source.load = id;
        std::reverse(source.casts.begin(), source.casts.end());
        source.axis[0] = axis[0];
        source.axis[1] = axis[1];
        return source;
      default:
        return {};
    }
    for (int& at : axis) at = axis_below(graph, node, at);
  }
}

}  // namespace tessera::lowering
