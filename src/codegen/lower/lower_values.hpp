// The values of a graph's nodes that steps have made so far.
#pragma once
#include <set>
#include <string_view>
#include <utility>

#include "codegen/schedule/layouts.hpp"

namespace tessera::internal::lowering {

/// Values that are kept in memory although registers could hold them.
struct InMemory {
  std::set<Id> values;  ///< nodes whose values are
  std::set<Id> left;    ///< matmuls whose left operands are
};

/// The place of a graph among those of a plan.
struct GraphPlace {
  int graph = 0;                 ///< its number, for labels
  int first_parameter = 0;       ///< the plan's tensor of its first parameter
  int first_axis = 0;            ///< the axis, among those of all phases, of its grid's first axis
  std::string_view suffix = {};  ///< of labels, for a role that lowers the graph once more
};

/// The axis whose neighbors are in consecutive registers, or -1, and how many of them go together, at most `most`.
std::pair<int, int> neighbors(const Layout& layout, int most);

class Values {
 public:
  Values(const GraphAnalysis& analysis, const Layouts& layouts, int most_registers, const InMemory& in_memory,
         const GraphPlace& place, Plan& plan);

  /// The value of a node; none if no step has made it, or only a step of a region that has ended.
  ValueId of(Id node) const { return of_[node]; }
  ValueId set(Id node, ValueId value);
  /// A value in another layout, if a step has converted it.
  ValueId moved(ValueId from, const Layout& layout) const;

  /// Values that are set after a mark are forgotten with it.
  struct Mark {
    std::size_t set, moved, put;
  };
  Mark mark() const { return {set_.size(), moved_from_.size(), in_scratch_.size()}; }
  void forget(Mark mark);

  // --- new values

  /// Labels from here on get this suffix, and their values storage of their own: for nodes that are lowered once more.
  void call(std::string_view suffix);

  Label label(Id node, std::string_view stem, std::string suffix = {}) const;
  /// The node's value in its layout. Where several regions make it, they share one storage.
  ValueId add(Id node);
  /// Elements of the node's shape and type in a storage of their own.
  ValueId add(Label label, Id node, const Layout& layout);
  /// Elements of a part of the node's tile.
  ValueId add_part(Id node, const Sweep& part);
  /// A number for the author's node. Where several regions make it, they share one storage.
  ValueId add_number(Label label, Id node, ElementType type);
  /// The node's value, which threads know without a step.
  ValueId add_known(Id node, Known known);
  /// The grid tile's index along an axis of the grid, for a step of the author's node.
  ValueId add_block(Id node, int axis);
  /// The elements of another value, as the node's value.
  ValueId add_view(Id node, ValueId of);
  /// The node's elements, which `from` has, in another layout; moved() finds it.
  ValueId add_moved(Id node, ValueId from, const Layout& layout);

  /// Scratch memory that has all elements of a value in row-major order; or none.
  ScratchId in_scratch(ValueId value) const;
  void put_in_scratch(ValueId value, ScratchId scratch) { in_scratch_.emplace_back(value, scratch); }

  bool is_large(const Layout& layout) const { return layout.registers() > most_registers_; }
  bool is_in_memory(Id node) const { return in_memory_.values.contains(node); }
  bool left_in_memory(Id matmul) const { return in_memory_.left.contains(matmul); }

  /// A loop indexes the value, and registers cannot be indexed.
  void needs_memory(ValueId value) { must_be_in_memory_.insert(node_of_[index_of(plan_.values[value].storage)]); }
  std::set<Id> must_be_in_memory() { return std::move(must_be_in_memory_); }

 private:
  std::size_t index_of(StorageId id) const { return static_cast<std::size_t>(id.index - first_storage_); }
  StorageId add_storage(Label label, Id node, const Layout& layout);

  const GraphAnalysis& analysis_;
  const Layouts& layouts_;
  const int most_registers_;
  const InMemory& in_memory_;
  const GraphPlace place_;
  const int first_storage_;
  Plan& plan_;
  std::vector<ValueId> of_;
  std::vector<StorageId> own_;  // of a node's value in its layout
  std::vector<Id> node_of_;     // by storage
  std::map<std::pair<Id, std::string>, StorageId> numbers_;
  std::map<ValueId, std::vector<std::pair<Layout, ValueId>>> moved_;
  // To undo: nodes with their previous values, and values that have been converted.
  std::vector<std::pair<Id, ValueId>> set_;
  std::vector<ValueId> moved_from_;
  std::vector<std::pair<ValueId, ScratchId>> in_scratch_;
  int moves_ = 0, parts_ = 0;  // for labels
  std::string suffix_;
  std::set<Id> must_be_in_memory_;
};

}  // namespace tessera::internal::lowering
