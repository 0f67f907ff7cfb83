// dce, dead code elimination: removes a loop without effects whose results are not read, a carried value that only
// feeds itself, a branch without effects, and a read of an InOut that is not used.
#include "codegen/passes.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

class DeadCode final : public Rewriter {
 public:
  explicit DeadCode(const Graph& graph)
      : Rewriter(graph), live_(graph.nodes.size()), owner_(graph.regions.size(), no_id) {
    for (Id id = 0; id < graph.nodes.size(); ++id)
      if (has_region(graph[id].op)) owner_[graph[id].body()] = id;
    for (Id id : graph.grid) mark(id);
    for (Id id = 0; id < graph.nodes.size(); ++id) {
      const Op op = graph[id].op;
      if (is_effect(op) && !has_region(op)) mark(id);
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
        case Op::repeat:
          reach(source().body(id).yields.back());
          [[fallthrough]];
        case Op::loop:
        case Op::branch:
          reach(node.in[0]);
          break;  // initial values are live only if the carried values are
        case Op::result:
          reach(node.in[0]);
          reach(source().body(node.in[0]).arguments[node.position() + 1]);
          break;
        case Op::argument:
          if (const std::size_t k = node.position(); k > 0) {
            reach(source()[owner_[node.region]].in[k]);
            reach(source().regions[node.region].yields[k - 1]);
          }
          break;
        default:
          for (Id in : node.in) reach(in);
      }
    }
  }

  std::vector<char> live_;
  std::vector<Id> owner_;
};

}  // namespace

Graph dce(const Graph& graph) { return DeadCode(graph).run(); }

}  // namespace tessera::internal
