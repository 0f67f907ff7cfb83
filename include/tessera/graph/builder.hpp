// Builds a graph, for the language and for the passes: it places, hash-conses and checks every node.
#pragma once
#include <span>
#include <unordered_map>

#include "tessera/graph/error.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The depth of nested loops and branches is limited, so that functions may recurse into regions.
inline constexpr int most_nested = 100;
/// The depth of views of views is limited, because every access of such a view visits all of them.
inline constexpr int most_views = 100;

class GraphBuilder {
 public:
  GraphBuilder(std::string name, std::vector<Parameter> parameters, Location location);

  const Graph& graph() const { return graph_; }
  Graph&& take() { return std::move(graph_); }

  /// The only function that makes nodes: it infers the shape, checks the operands, and returns an existing node if the
  /// new one is pure and equal. Throws Error with the location and how to fix it. `shape` is for ops whose shape is
  /// given.
  Id apply(Op op, ElementType type, std::span<const Id> in, std::span<const std::int64_t> attr, Location location,
           const Shape& shape = {});
  Id constant(ElementType type, Cell value, const Shape& shape, Location location);

  /// Opens the region of a loop, a branch or a repeat. It has its counter; `argument` adds carried values.
  RegionId begin_region(Op owner, Location location);
  /// For the innermost region, which is a loop's.
  void set_unroll(int factor) { graph_.regions[open_.back()].unroll = factor; }
  void set_cuda(std::shared_ptr<const CudaText> text) { graph_.cuda = std::move(text); }
  void add_hints(const Hints& hints) { graph_.hints.push_back(hints); }
  /// Value `position` inside the innermost region, or an open one: 0 is the counter, 1 .. are the carried values, which
  /// must be created in that order.
  Id argument(ElementType type, const Shape& shape, Location location, Location var = {}) {
    return argument(open_.back(), type, shape, location, var);
  }
  Id argument(RegionId region, ElementType type, const Shape& shape, Location location, Location var = {});
  /// Reorders the carried values of the innermost region.
  void order_carried(std::span<const Id> arguments);
  /// Closes the innermost region, with one initial value and one yield per carried value. `first` is the count of a
  /// loop, or the condition; a repeat yields, after its values, whether it continues.
  Id end_region(Id first, std::span<const Id> initial, std::span<const Id> yields, Location location);
  /// Carried value `position` (from 0) after a loop, a branch or a repeat.
  Id result(Id loop, int position, Location location);

  void set_grid(std::span<const Id> extents, Location location);
  std::int64_t add_text(std::string text);
  /// Returns the number by which nodes refer to the function; an equal function is found again. Error if its name is
  /// not an identifier, or if another function of the kernel has it.
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
