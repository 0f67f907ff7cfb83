// dead: a loop whose results nobody reads and that has no effect goes, and so does a carried value that only feeds
// itself, a branch without effects, and a read of an InOut that nobody uses.
#include "codegen/passes/passes.hpp"
#include "graph/rewrite.hpp"

namespace tessera {
namespace {

class DeadCode final : public Rewriter {
 public:
  explicit DeadCode(const Graph& graph)
      : Rewriter(graph), live_(graph.nodes.size()), owner_(graph.regions.size(), no_id) {
    for (Id id = 0; id < graph.nodes.size(); ++id)
      if (graph[id].op == Op::loop || graph[id].op == Op::branch) owner_[static_cast<RegionId>(graph[id].attr[0])] = id;
    for (Id id : graph.grid) mark(id);
    for (Id id = 0; id < graph.nodes.size(); ++id) {
      const Op op = graph[id].op;
      if (op == Op::store || op == Op::scatter || op == Op::atomic_add || op == Op::require) mark(id);
    }
  }

 private:
  bool keep(Id id) const override { return live_[id]; }

  void mark(Id root) {
    std::vector<Id> work{root};
    const auto reach = [&](Id id) {
      if (!live_[id]) work.push_back(id);
    };
    while (!work.empty()) {
      const Id id = work.back();
      work.pop_back();
      if (live_[id]) continue;
      live_[id] = true;
      const Node& node = source()[id];
      if (node.region != 0) reach(owner_[node.region]);
      switch (node.op) {
        case Op::loop:
          reach(node.in[0]);
          break;  // its initial values only if what they start is live
        case Op::result:
          reach(node.in[0]);
          reach(region_of(node.in[0]).arguments[static_cast<std::size_t>(node.attr[0]) + 1]);
          break;
        case Op::argument:
          if (node.attr[0] > 0) {
            const auto k = static_cast<std::size_t>(node.attr[0]);
            reach(source()[owner_[node.region]].in[k]);
            reach(source().regions[node.region].yields[k - 1]);
          }
          break;
        default:
          for (Id in : node.in) reach(in);
      }
    }
  }

  const Region& region_of(Id loop) const { return source().regions[static_cast<RegionId>(source()[loop].attr[0])]; }

  std::vector<char> live_;
  std::vector<Id> owner_;
};

}  // namespace

Graph eliminate_dead(const Graph& graph) { return DeadCode(graph).run(); }

}  // namespace tessera
