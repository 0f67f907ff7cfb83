// hoist_reshapes: store(reshape(cast(x / y), {1, m, n})) becomes store(cast(reshape(x, {1, m, n}) / y)). Axes of extent
// 1 in front say where a tile goes. Before the ops they cost nothing; after them they would end the store's expression.
#include <algorithm>
#include <array>

#include "codegen/passes.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

bool adds_axes_in_front(const Shape& from, const Shape& to) {
  const int more = to.rank() - from.rank();
  if (more <= 0 || from.rank() == 0) return false;
  for (int i = 0; i < to.rank(); ++i)
    if (to[i] != (i < more ? 1 : from[i - more])) return false;
  return true;
}

class ReshapeHoister final : public Rewriter {
 public:
  explicit ReshapeHoister(const Graph& graph) : Rewriter(graph), users_(graph.nodes.size()) {
    for (const Node& node : graph.nodes)
      for (const Id in : node.in) ++users_[in];
    for (const Region& region : graph.regions)
      for (const Id yield : region.yields) ++users_[yield];
  }

 private:
  Id rewrite(const Node& node, std::span<const Id> in) override {
    if (node.op != Op::reshape || !adds_axes_in_front(source()[node.in[0]].shape, node.shape))
      return Rewriter::rewrite(node, in);
    return lifted(in[0], node.in[0], node, most_ops);
  }

  // `from` is the copy of node `old`; an op must have no other user.
  Id lifted(Id from, Id old, const Node& reshape, int ops) {
    const Node at = made(from);
    if (at.op == Op::broadcast) return apply(at, at.in, reshape.shape);
    const auto is_whole = [&](Id id) { return made(id).shape == at.shape; };
    const bool may = is_elementwise(at.op) && source()[old].op == at.op && ops > 0 && users_[old] == 1 &&
                     std::ranges::any_of(at.in, is_whole);
    if (!may)
      return builder().apply(Op::reshape, at.type, std::array{from}, reshape.attr, reshape.location, reshape.shape);
    std::vector<Id> in = at.in;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (is_whole(in[i])) in[i] = lifted(in[i], source()[old].in[i], reshape, ops - 1);
    return apply(at, in, reshape.shape);
  }
  Id apply(const Node& at, std::span<const Id> in, const Shape& shape) {
    return builder().apply(at.op, at.type, in, at.attr, at.location, shape);
  }

  static constexpr int most_ops = 32;  // from the reshape to the node before which it ends up
  std::vector<int> users_;
};

}  // namespace

Graph hoist_reshapes(const Graph& graph) { return ReshapeHoister(graph).run(); }

}  // namespace tessera::internal
