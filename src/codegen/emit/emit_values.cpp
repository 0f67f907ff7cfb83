#include "codegen/emit/emit_values.hpp"

#include <bit>

#include "codegen/plan/names.hpp"
#include "codegen/plan/spelling.hpp"

namespace tessera::internal::codegen {

IndexExpression digits(const std::vector<Digit>& map, const IndexExpression& index) {
  IndexExpression sum = 0;
  for (const Digit& digit : map) sum = sum + index / digit.unit % digit.size * digit.scale;
  return sum;
}

IndexExpression digits(const std::vector<std::pair<Factor, int>>& map, const IndexExpression& lane,
                       const IndexExpression& warp) {
  IndexExpression sum = 0;
  for (const auto& [factor, scale] : map)
    sum = sum + (factor.place == Place::lane ? lane : warp) / factor.unit % factor.size * scale;
  return sum;
}

namespace {

IndexExpression thread_term(Writer& w, const std::vector<std::pair<Factor, int>>& digits) {
  std::int64_t most = 0;
  for (const auto& [factor, scale] : digits) most += scale * std::int64_t{factor.size - 1};
  for (const ThreadTerm& term : w.terms)
    if (term.digits == digits) return IndexExpression::variable(term.name, most + 1);
  for (const auto& [factor, scale] : digits) (factor.place == Place::lane ? w.uses.lane : w.uses.warp) = true;
  w.terms.push_back({fmt::format("t{}", w.terms.size()), digits});
  return IndexExpression::variable(w.terms.back().name, most + 1);
}

}  // namespace

IndexExpression coordinate(Writer& w, const Layout& layout, int axis, const IndexExpression& index) {
  IndexExpression sum = 0;
  if (const auto of_thread = layout.thread_digits(axis); !of_thread.empty()) sum = thread_term(w, of_thread);
  return sum + digits(layout.register_digits(axis), index);
}

IndexExpression coordinate(Writer& w, const Sweep& sweep, int axis, const IndexExpression& index) {
  return coordinate(w, sweep.layout, axis, index) + sweep.origin[static_cast<std::size_t>(axis)];
}

IndexExpression first_copy(Writer& w, const Layout& layout) {
  IndexExpression condition = IndexExpression::always();
  if (const int lanes = layout.lane_copies()) condition = equal(lanes == 31 ? w.lane() : w.lane() & lanes, 0);
  // If 12 warps hold a layout of 8, no bit of the warp index identifies the last four, which are copies.
  if (const int warps = layout.warps();
      warps < w.role.warps && !std::has_single_bit(static_cast<unsigned>(w.role.warps)))
    return both(condition, w.warp() < warps);
  if (const int warps = layout.warp_copies(w.role.warps))
    condition = both(condition, equal(warps == w.role.warps - 1 ? w.warp() : w.warp() & warps, 0));
  return condition;
}

IndexExpression inside_tile(Writer& w, const Sweep& sweep, const IndexExpression& index) {
  IndexExpression condition = IndexExpression::always();
  for (int axis = 0; axis < sweep.shape.rank(); ++axis)
    if (sweep.layout.covers_more(axis, sweep.shape))
      condition = both(condition, coordinate(w, sweep.layout, axis, index) < sweep.shape[axis]);
  return condition;
}

bool is_indexed_by_constants(const Storage& storage) {
  return storage.storage_class == StorageClass::registers || storage.storage_class == StorageClass::variable;
}

std::string element(Writer& w, ValueId id, const IndexExpression& index) {
  const Storage& storage = w.plan.storage(id);
  const std::string name = w.name(id);
  switch (storage.storage_class) {
    case StorageClass::variable:
      return name;
    case StorageClass::registers:
      return fmt::format("{}[{}]", name, index);
    case StorageClass::shared:
    case StorageClass::workspace:
      break;
  }
  w.use_memory(storage.storage_class == StorageClass::workspace);
  w.uses.thread = true;
  return fmt::format("{}[{}]", name,
                     index / storage.vector * (w.role.threads() * storage.vector) + index % storage.vector);
}

IndexExpression scalar(Writer& w, const Operand& operand) {
  if (operand.kind == Operand::Kind::literal) return decode(ElementType::i32, operand.literal).i32;
  return IndexExpression::variable(w.name(operand.value));
}

void declare(Writer& w, ValueId id, bool array_only, std::string_view initial) {
  const Storage& storage = w.plan.storage(id);
  const std::string name = w.name(id);
  const std::string_view type = register_type(storage.type);
  switch (storage.storage_class) {
    case StorageClass::registers:
      if (!w.declares(w.plan.values[id].storage)) break;
      if (storage.packed > 1)
        w.line("u32 {}[{}];", name, storage.registers / storage.packed);
      else
        w.line("{} {}[{}]{};", type, name, storage.registers, initial);
      break;
    case StorageClass::variable:
      if (!array_only && w.declares(w.plan.values[id].storage)) w.line("{} {};", type, name);
      break;
    case StorageClass::shared:
    case StorageClass::workspace:
      w.use_memory(storage.storage_class == StorageClass::workspace);
      w.uses.thread = true;
      break;
  }
}

std::string assign(Writer& w, ValueId id, const IndexExpression& index) {
  const Storage& storage = w.plan.storage(id);
  if (storage.storage_class != StorageClass::variable) return element(w, id, index) + " = ";
  const std::string name = w.name(id);
  if (!w.declares(w.plan.values[id].storage)) return name + " = ";
  return fmt::format("{}{} {} = ", storage.changes ? "" : "const ", register_type(storage.type), name);
}

}  // namespace tessera::internal::codegen
