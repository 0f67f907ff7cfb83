// find_source: the load of an operand of a matmul.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

int axis_below(const Graph& graph, const Node& node, int axis) {
  if (axis < 0 || node.op == Op::cast) return axis;
  if (node.op == Op::permute) return static_cast<int>(node.permutation()[static_cast<std::size_t>(axis)]);
  if (node.shape[axis] == 1) return -1;
  const Shape& from = graph[node.in[0]].shape;
  int nth = 0;  // position among the axes longer than 1
  for (int i = 0; i < axis; ++i) nth += node.shape[i] != 1;
  int below = 0;
  while (from[below] == 1 || nth-- > 0) ++below;
  return below;
}

bool is_seen_through(const Graph& graph, const Node& node) {
  return node.op == Op::cast || node.op == Op::permute ||
         (node.op == Op::reshape && only_unit_axes(graph[node.in[0]].shape, node.shape));
}

Source find_source(const Graph& graph, Id operand) {
  Source source;
  int axis[2] = {0, 1};
  Id id = operand;
  for (; is_seen_through(graph, graph[id]); id = graph[id].in[0]) {
    if (graph[id].op == Op::cast) source.casts.push_back(graph[id].type);
    for (int& at : axis) at = axis_below(graph, graph[id], at);
  }
  const Node& node = graph[id];
  if (node.op != Op::load) return {};
  if (node.ordered || node.bits() != 0) return {};
  source.load = id;
  std::reverse(source.casts.begin(), source.casts.end());
  source.axis[0] = axis[0];
  source.axis[1] = axis[1];
  return source;
}

Id end_of_source(const Graph& graph, Id id) {
  while (is_seen_through(graph, graph[id])) id = graph[id].in[0];
  return id;
}

std::string why_no_source(const Graph& graph, Id operand) {
  const Node& at = graph[end_of_source(graph, operand)];
  if (at.op != Op::load) return fmt::format("comes from '{}'", name(at.op));
  return at.ordered ? "is loaded from a tensor that is written" : "is padded with a value other than 0";
}

}  // namespace tessera::internal::lowering
