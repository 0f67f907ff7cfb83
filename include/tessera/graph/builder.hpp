// Builds a graph, for the language and for the passes: places, hash-conses and checks every node.
#pragma once
#include <span>
#include <unordered_map>

#include "tessera/graph/error.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Loops and branches within one another. What walks a graph region by region may call itself.
inline constexpr int most_nested = 100;
/// Views of views within one another: every access of such a view looks at all of them.
inline constexpr int most_views = 100;

class GraphBuilder {
 public:
  GraphBuilder(std::string name, std::vector<Parameter> parameters, Location location);

  const Graph& graph() const { return graph_; }
  Graph&& take() { return std::move(graph_); }

  /// The one call that makes nodes: infers the shape, checks the operands, and finds the node again if it is pure and
  /// there. Throws Error with the place and the mend. `shape` is for ops that are given one.
  Id apply(Op op, ElementType type, std::span<const Id> in, std::span<const std::int64_t> attr, Location location,
           const Shape& shape = {});
  Id constant(ElementType type, Cell value, const Shape& shape, Location location);

  /// Open the region of a loop, a branch or a repeat. Its counter is there, its carried values follow from `argument`.
  RegionId begin_region(Op owner, Location location);
  /// Of the innermost region, a loop's.
  void set_unroll(int factor) { graph_.regions[open_.back()].unroll = factor; }
  void set_cuda(std::shared_ptr<const CudaText> text) { graph_.cuda = std::move(text); }
  void add_hints(const Hints& hints) { graph_.hints.push_back(hints); }
  /// Value `position` as an iteration of the innermost region, or of an open one, sees it: 0 the counter, 1 .. the
  /// carried values, made in that order.
  Id argument(ElementType type, const Shape& shape, Location location) {
    return argument(open_.back(), type, shape, location);
  }
  Id argument(RegionId region, ElementType type, const Shape& shape, Location location);
  /// The carried values of the innermost region in another order.
  void order_carried(std::span<const Id> arguments);
  /// Close the innermost region, with one initial value and one yield per carried value. `first` is a loop's count, or
  /// the condition; a repeat yields behind its values whether it goes on.
  Id end_region(Id first, std::span<const Id> initial, std::span<const Id> yields, Location location);
  /// Carried value `position` (from 0) behind a loop, a branch or a repeat.
  Id result(Id loop, int position, Location location);

  void set_grid(std::span<const Id> extents, Location location);
  std::int64_t add_text(std::string text);
  /// Its number, by which nodes name it: that of an equal one, where it is there. Error if its name is no identifier, or
  /// another function of the kernel has it.
  std::int64_t add_function(const CustomFunction& function, Location location);

  /// Throws unless the node's region is still open.
  void check_visible(Id id, Location location) const;
  bool is_open(RegionId region) const { return is_open_[region]; }
  std::size_t depth() const { return open_.size(); }
  RegionId open_region() const { return open_.back(); }

  [[noreturn]] void fail(Location location, std::string_view text) const;

 private:
  Id extent(Id view, std::int64_t axis, Location location);
  void check_views(Id view, Location location) const;
  RegionId begin(RegionKind kind, Location location);
  RegionId end();
  Id append(Node node);
  Id find(const Node& node, std::uint64_t hash) const;

  Graph graph_;
  std::vector<RegionId> open_;
  std::vector<bool> is_open_;  // by region
  std::unordered_multimap<std::uint64_t, Id> known_;
};

}  // namespace internal
}  // namespace tessera
