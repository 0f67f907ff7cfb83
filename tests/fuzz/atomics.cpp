// Atomics of a random program. Where CTAs share an element, all use the same commutative op and no old value is used;
// where a CTA has its elements to itself, ops are arbitrary and old values are used.
#include <algorithm>

#include "fuzz/generator.hpp"

namespace tessera::internal::fuzz {

Op Generator::commuting_atomic(ElementType type) {
  std::vector<Op> fitting{Op::atomic_add};
  for (const Op op : {Op::atomic_max, Op::atomic_min, Op::atomic_and, Op::atomic_or, Op::atomic_xor})
    if (accepts(op, type)) fitting.push_back(op);
  return chance(40) ? Op::atomic_add : one_of(fitting);
}

void Generator::change(const Place& place) {
  const Extents tile = tile_for(place, chance(25) ? 1500 : 400);
  const bool gives = !place.shared && chance(40);
  Op op = place.by;
  if (!place.shared) {
    constexpr std::array others = {Op::atomic_exchange, Op::atomic_compare_exchange};
    op = chance(50) ? commuting_atomic(place.type) : one_of(others);
  }
  // If several elements compare at one index, little is known about the results.
  const bool by_index = is_free(place) && chance(op == Op::atomic_compare_exchange ? 10 : 40);
  const int depth = between(1, 3);
  std::vector<Name> from{limit(want(place.type, tile, depth), 16)};
  // The expected value occurs sometimes: there are few distinct numbers.
  if (op == Op::atomic_compare_exchange) from.push_back(limit(want(place.type, tile, 1), 16));
  Statement s{.op = op, .type = place.type, .shape = tile, .from = std::move(from)};
  s.fixed = 1u << s.from.size();
  s.from.push_back(place.view);
  if (by_index) {
    s.op = tessera::internal::on_elements(op);
    name_elements(s, place, 1);
  } else {
    for (std::size_t axis = 0; axis < tile.size(); ++axis) {
      const bool bound = place.at[axis] != nothing;
      if (bound) s.fixed |= 1u << s.from.size();
      s.from.push_back(bound ? place.at[axis] : coordinate((place.extents[axis] + tile[axis] - 1) / tile[axis]));
    }
  }
  const int scope = chance(70) ? static_cast<int>(MemoryScope::device) : between(place.shared ? 1 : 0, 2);
  s.attributes = {chance(60) ? 0 : between(0, 3), scope};
  written_.insert(place.parameter);
  if (gives) {
    emit(std::move(s), std::max(memory_most_[static_cast<std::size_t>(place.parameter)],
                                info(place.type).kind == ElementKind::real ? 3.0 : 300.0));
    return;
  }
  for (const Name name : s.from) of(name).used = true;
  body_->push_back(std::move(s));
  --fuel_;
}

}  // namespace tessera::internal::fuzz
