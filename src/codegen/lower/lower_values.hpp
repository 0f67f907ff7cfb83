// The values of a graph's nodes, as far as steps have made them.
#pragma once
#include <string_view>
#include <utility>

#include "codegen/lower/lower.hpp"

namespace tessera::internal::lowering {

/// The axis whose neighbours are in consecutive registers, or -1, and how many of them go together, at most `most`.
std::pair<int, int> neighbors(const Layout& layout, int most);

class Values {
 public:
  Values(const GraphAnalysis& analysis, const Layouts& layouts, int most_registers, const InMemory& in_memory,
         const GraphPlace& place, Plan& plan);

  /// The value of a node; none if no step has made it, or only in a region that is done.
  ValueId of(Id node) const { return of_[node]; }
  ValueId set(Id node, ValueId value);
  /// A value in another layout, if a step has brought it there.
  ValueId moved(ValueId from, const Layout& layout) const;

  /// What is set after a mark is forgotten with it.
  struct Mark {
    std::size_t set, moved, put;
  };
  Mark mark() const { return {set_.size(), moved_from_.size(), in_scratch_.size()}; }
  void forget(Mark mark);

  // --- new ones

  /// What is made from here on is called after it, and has storage of its own: where nodes are lowered once more.
  void call(std::string_view suffix);

  Label label(Id node, std::string_view stem, std::string suffix = {}) const;
  /// The node's value, in its layout. Where regions make it one by one, each has it in the same storage.
  ValueId add(Id node);
  /// Elements of the node's shape and type that have storage of their own.
  ValueId add(Label label, Id node, const Layout& layout);
  /// Elements of a part of the node's tile.
  ValueId add_part(Id node, const Sweep& part);
  /// A number of the author's node. Where regions make it one by one, each has it in the same storage.
  ValueId add_number(Label label, Id node, ElementType type);
  /// What threads know of themselves: the node's value.
  ValueId add_known(Id node, Known known);
  /// The block's index along an axis of the grid, for a step of the author's node.
  ValueId add_block(Id node, int axis);
  /// The elements of another value, as the node's value.
  ValueId add_view(Id node, ValueId of);
  /// The node's elements, which `from` has, in another layout: to be found by moved().
  ValueId add_moved(Id node, ValueId from, const Layout& layout);

  /// Scratch memory that has all elements of a value, row by row; or none.
  ScratchId in_scratch(ValueId value) const;
  void put_in_scratch(ValueId value, ScratchId scratch) { in_scratch_.emplace_back(value, scratch); }

  bool is_large(const Layout& layout) const { return layout.registers() > most_registers_; }
  bool is_in_memory(Id node) const { return in_memory_.values.contains(node); }
  bool left_in_memory(Id matmul) const { return in_memory_.left.contains(matmul); }

  /// A loop indexes the value, which registers cannot be.
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
  std::vector<Id> node_of_;     // of a storage
  std::map<std::pair<Id, std::string>, StorageId> numbers_;
  std::map<ValueId, std::vector<std::pair<Layout, ValueId>>> moved_;
  // To be undone: nodes with what they had before, and values that moved.
  std::vector<std::pair<Id, ValueId>> set_;
  std::vector<ValueId> moved_from_;
  std::vector<std::pair<ValueId, ScratchId>> in_scratch_;
  int moves_ = 0, parts_ = 0;  // for labels
  std::string suffix_;
  std::set<Id> must_be_in_memory_;
};

}  // namespace tessera::internal::lowering
