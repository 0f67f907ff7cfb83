#include "codegen/lower/lower_values.hpp"

#include <fmt/format.h>

namespace tessera::internal::lowering {

std::pair<int, int> neighbors(const Layout& layout, int most) {
  for (int axis = 0; axis < layout.rank(); ++axis) {
    const int run = layout.run(axis);
    if (run == 1) continue;
    int vector = 1;
    while (vector * 2 <= most && run % (vector * 2) == 0) vector *= 2;
    return {axis, vector};
  }
  return {-1, 1};
}

Values::Values(const GraphAnalysis& analysis, const Layouts& layouts, int most_registers, const InMemory& in_memory,
               const GraphPlace& place, Plan& plan)
    : analysis_(analysis),
      layouts_(layouts),
      most_registers_(most_registers),
      in_memory_(in_memory),
      place_(place),
      first_storage_(plan.storages.size()),
      plan_(plan),
      of_(analysis.graph.nodes.size()),
      own_(analysis.graph.nodes.size()) {}

ValueId Values::set(Id node, ValueId value) {
  set_.emplace_back(node, of_[node]);
  return of_[node] = value;
}

ValueId Values::moved(ValueId from, const Layout& layout) const {
  if (const auto found = moved_.find(from); found != moved_.end())
    for (const auto& [to, value] : found->second)
      if (to == layout) return value;
  return {};
}

ScratchId Values::in_scratch(ValueId value) const {
  for (const auto& [of, scratch] : in_scratch_)
    if (of == value) return scratch;
  return {};
}

void Values::forget(Mark mark) {
  in_scratch_.resize(mark.put);
  for (; set_.size() > mark.set; set_.pop_back()) of_[set_.back().first] = set_.back().second;
  for (; moved_from_.size() > mark.moved; moved_from_.pop_back()) moved_.at(moved_from_.back()).pop_back();
}

void Values::call(std::string_view suffix) {
  suffix_ = suffix;
  own_.assign(own_.size(), {});
  numbers_.clear();
}

Label Values::label(Id node, std::string_view stem, std::string suffix) const {
  return {.stem = std::string(stem),
          .number = analysis_.number[node],
          .suffix = suffix.append(suffix_).append(place_.suffix),
          .graph = place_.graph};
}

StorageId Values::add_storage(Label label, Id node, const Layout& layout) {
  Storage storage;
  storage.label = std::move(label);
  storage.type = analysis_[node].type;
  storage.registers = layout.registers();
  storage.storage_class = storage.registers == 1                   ? StorageClass::variable
                          : is_large(layout) || is_in_memory(node) ? StorageClass::workspace
                                                                   : StorageClass::registers;
  storage.vector = neighbors(layout, 16 / host_bytes(host_type(storage.type))).second;
  node_of_.push_back(node);
  return plan_.storages.add(std::move(storage));
}

ValueId Values::add(Id node) {
  StorageId& own = own_[node];
  if (!own) own = add_storage(label(node, name(analysis_[node].op)), node, layouts_.of[node]);
  return set(node, plan_.values.add({own, analysis_[node].shape, layouts_.of[node]}));
}

ValueId Values::add_part(Id node, const Sweep& part) {
  const StorageId storage =
      add_storage(label(node, name(analysis_[node].op), fmt::format("_part{}", parts_++)), node, part.layout);
  return plan_.values.add({storage, part.shape, part.layout, part.origin});
}
ValueId Values::add(Label label, Id node, const Layout& layout) {
  return plan_.values.add({add_storage(std::move(label), node, layout), analysis_[node].shape, layout});
}

ValueId Values::add_number(Label label, Id node, ElementType type) {
  StorageId& storage = numbers_[{node, label.stem}];
  if (!storage) {
    node_of_.push_back(node);
    storage = plan_.storages.add({.label = std::move(label), .type = type, .storage_class = StorageClass::variable});
  }
  return plan_.values.add({storage, Shape(std::span<const int>()), Layout(0)});
}

ValueId Values::add_known(Id node, Known known) {
  const ValueId value = add({}, node, Layout(analysis_[node].shape.rank()));
  plan_.storage(value).known = known;
  return set(node, value);
}

ValueId Values::add_block(Id node, int axis) {
  node_of_.push_back(node);
  const StorageId storage = plan_.storages.add(
      {.label = {}, .type = ElementType::i32, .storage_class = StorageClass::variable, .known = BlockIndex{axis}});
  return plan_.values.add({storage, Shape(std::span<const int>()), Layout(0)});
}

ValueId Values::add_view(Id node, ValueId of) {
  return set(node, plan_.values.add({plan_.values[of].storage, analysis_[node].shape, layouts_.of[node]}));
}

ValueId Values::add_moved(Id node, ValueId from, const Layout& layout) {
  Label label = plan_.storage(from).label;
  label.suffix += fmt::format("_moved{}", moves_++);
  const ValueId to = add(std::move(label), node, layout);
  moved_[from].emplace_back(layout, to);
  moved_from_.push_back(from);
  return to;
}

}  // namespace tessera::internal::lowering
