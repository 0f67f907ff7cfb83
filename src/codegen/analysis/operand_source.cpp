// find_source: the load of an operand of a matmul.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

Axes axes_below(const Graph& graph, const Node& node, int axis) {
  const auto at = static_cast<std::size_t>(axis);
  if (node.op == Op::permute) return {static_cast<int>(node.permutation()[at])};
  return node.op == Op::reshape ? merged_axes(graph[node.in[0]].shape, node.shape)->at(at) : Axes{axis};
}

bool is_along(const GraphAccess& access, const Axes& axes) { return !axes.empty() && axes.back() == access.fast; }

bool is_seen_through(const Graph& graph, const Node& node) {
  return node.op == Op::cast || node.op == Op::permute ||
         (node.op == Op::reshape && merged_axes(graph[node.in[0]].shape, node.shape));
}

Source find_source(const Graph& graph, Id operand) {
  Source source{.load = operand, .axes = {{0}, {1}}, .casts = {}};
  for (Id& id = source.load; is_seen_through(graph, graph[id]); id = graph[id].in[0]) {
    if (graph[id].op == Op::cast) source.casts.push_back(graph[id].type);
    for (Axes& axes : source.axes) {
      Axes below;
      for (const int axis : axes)
        for (const int from : axes_below(graph, graph[id], axis)) below.push_back(from);
      axes = std::move(below);
    }
  }
  const Node& node = graph[source.load];
  if (node.op != Op::load || node.ordered || node.bits() != 0) return {};
  std::reverse(source.casts.begin(), source.casts.end());
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
