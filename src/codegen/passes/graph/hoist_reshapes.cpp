// hoist_reshapes: store(reshape(cast(x / y), {1, m, n})) becomes store(cast(reshape(x, {1, m, n}) / y)), and so with
// {m / 4, 4, n}. Such axes say where a tile goes. Before the ops they cost nothing; after them they would end the
// store's expression.
#include <algorithm>
#include <array>
#include <bit>

#include "codegen/passes.hpp"
#include "graph/merged_axes.hpp"
#include "graph/rewrite.hpp"

namespace tessera::internal {
namespace {

// Does a reshape split axes or add some of extent 1, so that registers need not move? Layouts distribute axes by powers
// of two.
bool splits_axes(const Shape& from, const Shape& to) {
  if (from.rank() == 0 || to.rank() <= from.rank() || to[to.rank() - 1] != from[from.rank() - 1]) return false;
  const std::optional<std::vector<Axes>> parts = merged_axes(to, from);
  const auto by_powers_of_two = [&](const Axes& axes) {
    return std::all_of(axes.begin() + !axes.empty(), axes.end(),
                       [&](int axis) { return std::has_single_bit(static_cast<unsigned>(to[axis])); });
  };
  return parts && std::ranges::all_of(*parts, by_powers_of_two);
}

// The shape of an operand that is broadcast to `from`, once `from` is split to `to`.
Shape split_operand(const Shape& operand, const Shape& from, const Shape& to) {
  const std::vector<Axes> parts = *merged_axes(to, from);
  std::vector<int> extents(static_cast<std::size_t>(to.rank()), 1);
  for (int axis = from.rank() - operand.rank(); axis < from.rank(); ++axis)
    if (operand[axis - from.rank() + operand.rank()] != 1)
      for (const int part : parts[static_cast<std::size_t>(axis)]) extents[static_cast<std::size_t>(part)] = to[part];
  const auto first =
      std::find_if(extents.begin(), extents.end() - operand.rank(), [](int extent) { return extent != 1; });
  return Shape(std::span<const int>(first, extents.end()));
}

class ReshapeHoister final : public Rewriter {
 public:
  explicit ReshapeHoister(const Graph& graph)
      : Rewriter(graph), users_(graph.nodes.size()), stored_(graph.nodes.size(), true) {
    for (const Region& region : graph.regions)
      for (const Id yield : region.yields) ++users_[yield], stored_[yield] = false;
    for (Id id = static_cast<Id>(graph.nodes.size()); id-- > 0;) {  // users come after their operands
      const Node& node = graph[id];
      const bool stores = node.op == Op::store || (is_elementwise(node.op) && stored_[id]);
      for (const Id in : node.in) ++users_[in], stored_[in] = stored_[in] && stores;
    }
  }

 private:
  Id rewrite(const Node& node, std::span<const Id> in) override {
    const bool splits = node.op == Op::reshape && stored_[static_cast<std::size_t>(&node - source().nodes.data())] &&
                        splits_axes(source()[node.in[0]].shape, node.shape);
    return splits ? lifted(in[0], node.in[0], node, most_ops) : Rewriter::rewrite(node, in);
  }

  // `from` is the copy of node `old`; an op must have no other user.
  Id lifted(Id from, Id old, const Node& reshape, int ops) {
    const Node at = made(from);
    const auto is_whole = [&](Id id) { return made(id).shape == at.shape; };
    const bool broadcasts = at.op == Op::broadcast;
    const bool may = is_elementwise(at.op) && source()[old].op == at.op && ops > 0 && users_[old] == 1 &&
                     std::ranges::any_of(at.in, is_whole);
    if (!may && !broadcasts) return reshaped(from, reshape, reshape.shape);
    std::vector<Id> in = at.in;
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = !broadcasts && is_whole(in[i])
                  ? lifted(in[i], source()[old].in[i], reshape, ops - 1)
                  : reshaped(in[i], reshape, split_operand(made(in[i]).shape, at.shape, reshape.shape));
    return builder().apply(at.op, at.type, in, at.attr, at.location, reshape.shape);
  }
  Id reshaped(Id id, const Node& reshape, const Shape& shape) {
    const Node at = made(id);
    if (at.shape == shape) return id;
    return builder().apply(Op::reshape, at.type, std::array{id}, reshape.attr, reshape.location, shape);
  }

  static constexpr int most_ops = 32;  // from the reshape to the node before which it ends up
  std::vector<int> users_;
  std::vector<char> stored_;  // by node: do only stores use it, through elementwise ops?
};

}  // namespace

Graph hoist_reshapes(const Graph& graph) { return ReshapeHoister(graph).run(); }

}  // namespace tessera::internal
