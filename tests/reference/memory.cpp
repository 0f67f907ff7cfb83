#include "reference/memory.hpp"

#include <utility>

#include "reference/tile.hpp"

namespace tessera::internal::reference {

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
  contended_ = undefined_;
}

bool Memory::restart() {
  cells_.clear();
  sums_.clear();
  if (access_ != Access::in)
    for (const Element& value : initial_) cells_.push_back({value});
  return std::exchange(grew_, false);
}

// For an Out only the final values of CTAs matter: nothing reads them.
Memory::Cell& Memory::touched(std::int64_t element, std::int64_t block, std::int64_t Cell::*as) {
  const auto i = static_cast<std::size_t>(element);
  Cell& cell = cells_[i];
  const bool disordered = other(cell.writer, block) || (as != &Cell::changer && other(cell.changer, block)) ||
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

namespace {

// If the bits match, the element becomes that value. For reals neither a zero's sign is known nor a NaN's bits.
Element exchanged(const Element& old, const Change& change) {
  const Element& expected = change.expected;
  const bool differ = !(old.nan && expected.nan) && (old.high < expected.low || expected.high < old.low);
  if (differ) return old;
  const bool same = old.exact() && expected.exact() && old.low == expected.low && old.low != 0;
  return same ? change.value : hull(old, change.value);
}

}  // namespace

Element Memory::change(std::int64_t element, const Change& change, std::int64_t block, std::int64_t effect) {
  const auto i = static_cast<std::size_t>(element);
  Cell& cell = touched(element, block, &Cell::changer);
  const bool places_count = change.op == Op::atomic_exchange || change.op == Op::atomic_compare_exchange;
  const bool others = cell.changer == several;
  cell.mixed |= cell.by != Op{} && cell.by != change.op;
  cell.by = change.op;
  if (others && (places_count || cell.mixed) && !undefined_[i]) undefined_[i] = grew_ = true;
  if (others && !contended_[i]) contended_[i] = grew_ = true;
  const Element old = cell.value;
  const auto by = [&](Op op) { cell.value = binary(op, type_, old, change.value); };
  if (change.op != Op::atomic_add) sums_.erase(element);
  switch (change.op) {
    case Op::atomic_max:
      by(Op::maximum);
      break;
    case Op::atomic_min:
      by(Op::minimum);
      break;
    case Op::atomic_and:
      by(Op::bitwise_and);
      break;
    case Op::atomic_or:
      by(Op::bitwise_or);
      break;
    case Op::atomic_xor:
      by(Op::bitwise_xor);
      break;
    case Op::atomic_exchange:
      cell.value = !change.alone && cell.effect == effect ? hull(old, change.value) : change.value;
      break;
    case Op::atomic_compare_exchange: {
      const bool open = numbers::is_real(type_) || !(old.exact() && change.expected.exact());
      cell.value = !change.alone ? Element::anything()
                   : open        ? exchanged(old, change)
                                 : (old.low == change.expected.low ? change.value : old);
      break;
    }
    default:
      if (!numbers::is_real(type_)) {
        by(Op::add);
        break;
      }
      const auto [sum, fresh] = sums_.try_emplace(element, type_);
      if (fresh) sum->second.add(old);
      sum->second.add(change.value);
      // PTX ISA, atom.add: on f32 in global memory it flushes subnormals.
      cell.value = sum->second.value(0, type_ == ElementType::f32);
  }
  cell.effect = effect;
  return undefined_[i] || contended_[i] || !change.alone ? Element::anything() : old;
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

}  // namespace tessera::internal::reference
