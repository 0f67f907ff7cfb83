#include "jit/inspect/graph_drawing.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace tessera::internal {
namespace {

constexpr int box_width = GraphDrawing::box_width, box_height = GraphDrawing::box_height, gap_x = 20, gap_y = 34;

struct Drawn {
  int node = 0, layer = 0;
  double place = 0;  // in its layer
  std::vector<std::size_t> above = {};
};

bool is_drawn(const LoweringRecord::Node& node) {
  return node.is_access || (!node.result.empty() && !node.result.ends_with("[]") && node.op != "constant");
}

/// Orders each layer by the mean place of what is above, then of what is below, a few times (Sugiyama's method).
void order(std::vector<Drawn>& nodes, std::vector<std::vector<std::size_t>>& layers) {
  std::vector<std::vector<std::size_t>> below(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const std::size_t above : nodes[i].above) below[above].push_back(i);
  const auto number = [&](const std::vector<std::size_t>& layer) {
    for (std::size_t i = 0; i < layer.size(); ++i) nodes[layer[i]].place = static_cast<double>(i);
  };
  const auto sort = [&](std::vector<std::size_t>& layer, const auto& beside) {
    std::map<std::size_t, double> mean;
    for (const std::size_t i : layer) {
      double sum = 0;
      for (const std::size_t other : beside(i)) sum += nodes[other].place;
      mean[i] = beside(i).empty() ? nodes[i].place : sum / static_cast<double>(beside(i).size());
    }
    std::ranges::stable_sort(layer, {}, [&](std::size_t i) { return mean[i]; });
    number(layer);
  };
  std::ranges::for_each(layers, number);
  for (int round = 0; round < 6; ++round) {
    for (auto& layer : layers)
      sort(
          layer, [&](std::size_t i) -> const auto& { return nodes[i].above; });
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
      sort(
          *layer, [&](std::size_t i) -> const auto& { return below[i]; });
  }
}

}  // namespace

GraphDrawing draw_graph(const LoweringRecord& record) {
  std::vector<Drawn> nodes;
  std::map<int, std::size_t> drawn;
  for (std::size_t number = 0; number < record.nodes.size(); ++number) {
    const LoweringRecord::Node& node = record.nodes[number];
    if (!is_drawn(node)) continue;
    Drawn one{.node = static_cast<int>(number)};
    for (const int operand : node.operands)
      if (const auto found = drawn.find(operand); found != drawn.end()) {
        one.above.push_back(found->second);
        one.layer = std::max(one.layer, nodes[found->second].layer + 1);
      }
    drawn[one.node] = nodes.size();
    nodes.push_back(std::move(one));
  }
  if (nodes.empty()) return {};
  // As late as its users allow.
  constexpr int none = 1 << 30;
  std::vector<int> first_user(nodes.size(), none);
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (first_user[i] != none) nodes[i].layer = first_user[i] - 1;
    for (const std::size_t above : nodes[i].above) first_user[above] = std::min(first_user[above], nodes[i].layer);
  }
  std::vector<std::vector<std::size_t>> layers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    layers.resize(std::max(layers.size(), static_cast<std::size_t>(nodes[i].layer) + 1));
    layers[static_cast<std::size_t>(nodes[i].layer)].push_back(i);
  }
  order(nodes, layers);
  std::size_t widest = 0;
  for (const auto& layer : layers) widest = std::max(widest, layer.size());
  const int width = static_cast<int>(widest) * (box_width + gap_x) + gap_x;
  const int height = static_cast<int>(layers.size()) * (box_height + gap_y) + gap_y;
  const auto x = [&](const Drawn& node) {
    const std::size_t count = layers[static_cast<std::size_t>(node.layer)].size();
    const double left = (width - static_cast<double>(count) * (box_width + gap_x)) / 2 + gap_x / 2.0;
    return static_cast<int>(left + node.place * (box_width + gap_x));
  };
  const auto y = [](const Drawn& node) { return gap_y / 2 + node.layer * (box_height + gap_y); };
  GraphDrawing drawing{.width = width, .height = height, .boxes = {}, .wires = {}};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    drawing.boxes.push_back({nodes[i].node, x(nodes[i]), y(nodes[i])});
    for (const std::size_t above : nodes[i].above) drawing.wires.push_back({above, i});
  }
  return drawing;
}

}  // namespace tessera::internal
