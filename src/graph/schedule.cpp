#include "graph/graph.hpp"

namespace tessera {
namespace {

class Scheduler {
 public:
  explicit Scheduler(const Graph& graph) : graph_(graph), seen_(graph.nodes.size()), order_(graph.regions.size()) {}

  std::vector<std::vector<Id>> run() {
    for (Id id : graph_.grid) visit(id);
    visit_region(0);
    return std::move(order_);
  }

 private:
  void visit_region(RegionId region) {
    const Region& body = graph_.regions[region];
    for (Id id : body.arguments) visit(id);
    for (Id id : body.effects) visit(id);
    for (Id id : body.yields) visit(id);
  }

  // Operands first. The stack is our own: a kernel unrolled by C++ may be a hundred thousand ops deep.
  void visit(Id root) {
    std::vector<std::pair<Id, std::size_t>> stack;
    const auto enter = [&](Id id) {
      if (!seen_[id]) stack.emplace_back(id, 0);
      seen_[id] = true;
    };
    enter(root);
    while (!stack.empty()) {
      auto& [id, next] = stack.back();
      const Node& node = graph_[id];
      if (next < node.in.size()) {
        enter(node.in[next++]);
        continue;
      }
      const Id done = id;
      stack.pop_back();
      // What the body needs from outside is listed in the outer region, ahead of the loop itself.
      if (has_region(node.op)) visit_region(node.body());
      order_[node.region].push_back(done);
    }
  }

  const Graph& graph_;
  std::vector<char> seen_;
  std::vector<std::vector<Id>> order_;
};

}  // namespace

std::vector<std::vector<Id>> schedule(const Graph& graph) { return Scheduler(graph).run(); }

}  // namespace tessera
