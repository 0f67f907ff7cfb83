// Builds a graph, for the language and for the passes: places, hash-conses and checks every node.
#pragma once
#include <span>
#include <unordered_map>

#include "graph/error.hpp"
#include "graph/graph.hpp"

namespace tessera {

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

  /// Open a loop's region. Its counter and its carried values follow from `argument`.
  RegionId begin_loop(Location location);
  /// Value `position` as an iteration sees it: 0 the counter, 1 .. the carried values, made in that order.
  Id argument(ElementType type, const Shape& shape, Location location);
  /// Close the innermost region, a loop of `count` iterations, with one initial value and one yield per carried value.
  Id end_loop(Id count, std::span<const Id> initial, std::span<const Id> yields, Location location);
  /// Carried value `position` (from 0) after the loop.
  Id result(Id loop, int position, Location location);

  RegionId begin_branch();
  Id end_branch(Id condition, Location location);

  void set_grid(std::span<const Id> extents, Location location);
  std::int64_t add_text(std::string text);

  /// Throws unless the node's region is still open.
  void check_visible(Id id, Location location) const;
  bool is_open(RegionId region) const;
  std::size_t depth() const { return open_.size(); }
  RegionId open_region() const { return open_.back(); }

  [[noreturn]] void fail(Location location, std::string_view text) const;

 private:
  Id extent(Id view, int axis, Location location);
  RegionId begin(RegionKind kind);
  Id append(Node node);
  Id find(const Node& node, std::uint64_t hash) const;

  Graph graph_;
  std::vector<RegionId> open_;
  std::unordered_multimap<std::uint64_t, Id> known_;
};

}  // namespace tessera
