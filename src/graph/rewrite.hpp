// Copies a graph, node by node in canonical order, into a new builder: the base class of every graph pass.
#pragma once
#include <span>
#include <vector>

#include "tessera/graph/builder.hpp"

namespace tessera::internal {

/// The copy hash-conses, hoists values that have become loop-invariant, and drops nodes that `keep` calls dead as well
/// as carried values that do not change. A pass overrides the functions for what it changes.
class Rewriter {
 public:
  explicit Rewriter(const Graph& source);
  virtual ~Rewriter() = default;
  Graph run();

 protected:
  /// The new node for an old one whose operands have been copied.
  virtual Id rewrite(const Node& node, std::span<const Id> in);
  /// The initial value of a carried value, whose copy is `initial`; the copy has its type and shape. `argument` is the
  /// value inside the loop.
  virtual Id enter(Id, Id initial) { return initial; }
  /// The value after the loop, where the copy of the carried value is `result`.
  virtual Id leave(Id, Id result) { return result; }
  /// Dead nodes are left out. `id` is a node of the source; for a carried value, its argument inside the loop.
  virtual bool keep(Id) const { return true; }

  const Graph& source() const { return source_; }
  /// The copy of a node of the source.
  Id copy_of(Id id) const { return map_[id]; }
  GraphBuilder& builder() { return builder_; }
  const Node& made(Id id) const { return builder_.graph()[id]; }

 private:
  void copy_region(RegionId region);
  void copy_node(Id id);
  void copy_owner(Id id);
  std::vector<Id> mapped(std::span<const Id> ids) const;

  const Graph& source_;
  GraphBuilder builder_;
  std::vector<std::vector<Id>> order_;
  std::vector<Id> map_;                   // old node -> new node
  std::vector<std::vector<Id>> results_;  // old loop, branch or repeat -> new node of each carried value
};

/// The graph as the language produces it, without carried values that do not change.
Graph canonical(const Graph& graph);

}  // namespace tessera::internal
