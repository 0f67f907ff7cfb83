#include <algorithm>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {
namespace {

class Scheduler {
 public:
  explicit Scheduler(const Graph& graph) : graph_(graph), order_(graph.regions.size()) {}

  std::vector<std::vector<Id>> run() {
    visit_all([](Id) {});
    find_storage_classes();
    visit_all([&](Id id) { order_[home_[id]].push_back(id); });
    return std::move(order_);
  }

 private:
  // Calls each(id) for every live node, operands first.
  template <class Each>
  void visit_all(const Each& each) {
    seen_.assign(graph_.nodes.size(), false);
    for (Id id : graph_.grid) visit(id, each);
    visit_region(0, each);
  }
  template <class Each>
  void visit_region(RegionId region, const Each& each) {
    const Region& body = graph_.regions[region];
    const bool counts = body.kind == RegionKind::loop;
    for (std::size_t k = counts ? 0 : 1; k < body.arguments.size(); ++k) visit(body.arguments[k], each);
    for (Id id : body.effects) visit(id, each);
    for (Id id : body.yields) visit(id, each);
  }
  // An explicit stack: a kernel unrolled by C++ may be a hundred thousand ops deep.
  template <class Each>
  void visit(Id root, const Each& each) {
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
      // Values that the body needs from outside are listed in the outer region, before the loop itself.
      if (has_region(node.op)) visit_region(node.body(), each);
      each(done);
    }
  }

  // The region in which a node is computed: its own, or within that the innermost branch that contains all its users.
  // Users come after their operands.
  void find_storage_classes() {
    constexpr RegionId nobody = ~RegionId(0);
    home_.assign(graph_.nodes.size(), nobody);
    const auto use = [&](Id id, RegionId region) {
      home_[id] = home_[id] == nobody ? region : around(home_[id], region);
    };
    for (Id id : graph_.grid) use(id, 0);
    for (RegionId region = 0; region < graph_.regions.size(); ++region)
      for (Id id : graph_.regions[region].yields) use(id, region);
    for (Id id = static_cast<Id>(graph_.nodes.size()); id-- > 0;) {
      if (!seen_[id]) continue;
      const Node& node = graph_[id];
      const bool stays = node.ordered || node.uniform || node.op == Op::argument || node.op == Op::result;
      home_[id] = stays || home_[id] == nobody ? node.region : into_branches(node.region, home_[id]);
      for (Id in : node.in) use(in, home_[id]);
    }
  }
  RegionId around(RegionId a, RegionId b) const {
    while (a != b) (a > b ? a : b) = graph_.regions[std::max(a, b)].parent;
    return a;
  }
  // From a region towards one inside of it, as long as only branches are entered: a loop would compute the node in each
  // iteration.
  RegionId into_branches(RegionId region, RegionId inner) const {
    RegionId deepest = inner;
    for (; inner != region; inner = graph_.regions[inner].parent)
      if (graph_.regions[inner].kind != RegionKind::branch) deepest = graph_.regions[inner].parent;
    return deepest;
  }

  const Graph& graph_;
  std::vector<char> seen_;
  std::vector<RegionId> home_;
  std::vector<std::vector<Id>> order_;
};

}  // namespace

std::vector<std::vector<Id>> schedule(const Graph& graph) { return Scheduler(graph).run(); }

}  // namespace tessera::internal
