#include "reference/memory.hpp"

#include <utility>

#include "reference/tile.hpp"

namespace tessera::reference {

std::vector<std::int64_t> extents_of(const Parameter& parameter, const Argument& argument) {
  return {argument.extent.begin(), argument.extent.begin() + parameter.rank};
}

std::vector<Real> read(const Parameter& parameter, const Argument& argument) {
  const std::vector<std::int64_t> extents = extents_of(parameter, argument);
  std::int64_t size = 1;
  for (std::int64_t extent : extents) size *= extent;
  std::vector<Real> values;
  values.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    const std::vector<std::int64_t> at = coordinates(i, extents);
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) offset += at[axis] * argument.stride[axis];
    values.push_back(numbers::read_number(
        static_cast<const std::byte*>(argument.data) + offset * info(parameter.type).bytes, parameter.type));
  }
  return values;
}

Memory::Memory(const Parameter& parameter, const Argument& argument)
    : access_(parameter.access), type_(parameter.type) {
  if (access_ == Access::scalar) return;
  extents_ = extents_of(parameter, argument);
  for (Real x : read(parameter, argument)) initial_.push_back(Element::of(x));
  undefined_.assign(initial_.size(), false);
}

bool Memory::restart() {
  cells_.clear();
  sums_.clear();
  if (access_ != Access::in)
    for (const Element& value : initial_) cells_.push_back({value});
  return std::exchange(grew_, false);
}

// Of an Out only the values matter that blocks leave: nothing reads them.
Memory::Cell& Memory::touched(std::int64_t element, std::int64_t block, std::int64_t Cell::*as) {
  const auto i = static_cast<std::size_t>(element);
  Cell& cell = cells_[i];
  const bool disordered = other(cell.writer, block) || (as != &Cell::adder && other(cell.adder, block)) ||
                          (as != &Cell::reader && other(cell.reader, block));
  if (access_ == Access::in_out && disordered && !undefined_[i]) undefined_[i] = grew_ = true;
  cell.*as = other(cell.*as, block) ? several : block;
  return cell;
}

Element Memory::load(std::int64_t element, std::int64_t block) {
  const auto i = static_cast<std::size_t>(element);
  if (access_ == Access::in) return initial_[i];
  const Element value = touched(element, block, &Cell::reader).value;
  return undefined_[i] ? Element::anything() : value;
}

void Memory::store(std::int64_t element, const Element& value, std::int64_t block, std::int64_t effect) {
  const bool others = other(cells_[static_cast<std::size_t>(element)].writer, block);
  Cell& cell = touched(element, block, &Cell::writer);
  cell.value = others || cell.effect == effect ? hull(cell.value, value) : value;
  cell.effect = effect;
  sums_.erase(element);
}

void Memory::add(std::int64_t element, const Element& value, std::int64_t block) {
  Cell& cell = touched(element, block, &Cell::adder);
  if (!numbers::is_real(type_)) {
    cell.value = binary(Op::add, type_, cell.value, value);
    return;
  }
  const auto [sum, fresh] = sums_.try_emplace(element, type_);
  if (fresh) sum->second.add(cell.value);
  sum->second.add(value);
  cell.value = sum->second.value(0, type_ == ElementType::f32);  // PTX ISA, atom.add: of f32 global memory has no subnormals then
}

void Memory::spoil() {
  for (std::size_t i = 0; i < undefined_.size(); ++i)
    if (!undefined_[i]) undefined_[i] = grew_ = true;
}

std::vector<Element> Memory::values() const {
  std::vector<Element> values;
  for (std::size_t i = 0; i < cells_.size(); ++i)
    values.push_back(undefined_[i] ? Element::anything() : cells_[i].value);
  return values;
}

}  // namespace tessera::reference
