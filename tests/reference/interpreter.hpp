// Runs the nodes of a graph, one CTA after another.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "reference/memory.hpp"
#include "reference/tile.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::reference {

class Interpreter {
 public:
  /// Computes values that depend on extents and scalars. Throws Error if a requirement does not hold.
  Interpreter(const Graph& graph, std::span<const Argument> arguments, std::vector<Memory>& memory);

  /// Extents of the grid.
  std::vector<std::int64_t> grid() const;
  /// One CTA, by its linear index and its coordinates in the grid.
  void run(std::int64_t block, std::span<const std::int64_t> coordinates);

 private:
  const Tile& operand(const Node& node, std::size_t i) const { return values_[node.in[i]]; }
  void run_region(RegionId region);
  void run_node(Id id);
  void require(const Node& node) const;
  void report(const Node& node) const;
  void loop(Id id);
  /// The effects of a region may have happened, on unknown elements.
  void spoil(RegionId region);
  void spoil_tensors(std::size_t parameter);

  Tile compute(const Node& node) const;
  View view(const Node& node) const;

  /// Where each element of a memory op's tile is in its tensor; outside or unknown, if it is.
  std::vector<std::int64_t> places(const Node& node, const Shape& tile) const;
  /// The tensor of an access, or the list that it may be any tensor of.
  std::size_t list_of(const Node& access) const;
  Tile load(const Node& node);
  void write(const Node& node);
  Tile change(const Node& node);

  const Graph& graph_;
  std::span<const Argument> arguments_;
  std::vector<Memory>& memory_;
  std::vector<std::vector<Id>> nodes_;  // of each region, except uniform ones and arguments: in execution order
  std::vector<Tile> values_;            // by node
  std::vector<View> views_;             // by node
  std::map<Id, std::vector<Tile>> carried_;  // by loop: its final values
  std::int64_t block_ = 0, effect_ = 0;
  std::vector<std::int64_t> coordinates_;
};

}  // namespace tessera::internal::reference
