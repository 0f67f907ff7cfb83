// The parameters of a random program, their memory, its grid, and which elements each CTA may write.
#include <algorithm>
#include <numeric>

#include "fuzz/generator.hpp"

namespace tessera::internal::fuzz {

void Generator::make_parameters() {
  const int axes = chance(oversized_ ? 80 : 35) ? 0 : chance(60) ? 1 : chance(75) ? 2 : 3;
  for (int i = 0; i < axes; ++i) {
    grid_.push_back(chance(3) ? 0 : chance(20) ? 1 : axes == 3 ? between(1, 3) : between(2, axes == 1 ? 7 : 4));
  }
  std::vector<Access> kinds(static_cast<std::size_t>(between(1, 3)), Access::in);
  kinds.insert(kinds.end(), static_cast<std::size_t>(between(0, 2)), Access::in_out);
  const int outs = between(kinds.back() == Access::in_out ? 0 : 1, 2);
  kinds.insert(kinds.end(), static_cast<std::size_t>(outs), Access::out);
  kinds.insert(kinds.end(), static_cast<std::size_t>(between(0, 2)), Access::scalar);
  if (chance(30)) shuffle(kinds);
  for (const Access access : kinds) {
    if (access != Access::scalar) {
      make_tensor(access);
      continue;
    }
    const ElementType type = chance(60) ? ElementType::i32 : chance(60) ? ElementType::f32 : ElementType::i64;
    program_.parameters.push_back({access, type, 0});
    Given given;
    given.scalar =
        type == ElementType::f32 && !exact_ ? between(-8, 8) * 0.25 : between(type == ElementType::i32 ? 0 : -3, 5);
    program_.given.push_back(given);
    values_.push_back({type, {}, 5, true});
    visible_.push_back(static_cast<Name>(values_.size()) - 1);
    memory_most_.push_back(0);
  }
  if (chance(8)) share_memory();
  make_far_view();
  make_list();
}

/// From a separate random source, so that each seed's program is otherwise the one from before they were added.
void Generator::make_far_view() {
  std::mt19937_64 random(program_.seed * 0x9E3779B97F4A7C15ull + 37);
  const auto from = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  if (oversized_ || from(0, 11) > 0) return;
  FarView view{.parameter = static_cast<int>(program_.parameters.size())};
  constexpr std::array types = {ElementType::u8, ElementType::bf16, ElementType::f32, ElementType::i32};
  Given given;
  if (from(0, 2) > 0) {
    view.tile = {from(0, 1) > 0 ? 16 : 32, from(1, 12)};
    const int rows = from(1, 3), step = std::array{1, 2, -1}[static_cast<std::size_t>(from(0, 2))];
    given.extents = {rows, view.tile[1] + from(-1, 1)};
    const std::int64_t apart = (std::int64_t{1} << 32) / ((view.tile[0] - 1) * std::abs(step));
    given.strides = {apart + (from(0, 1) > 0 ? from(0, 5) : 16 - apart % 16), 1};
    view.step = step;
    view.start = -step * (view.tile[0] - 1 - from(0, 2)) + from(0, std::max(0, rows - 1));
  } else {
    const int bits = from(26, 29), most = (1 << (31 - bits)) - 1;
    view.tile = {most + 1 + from(1, 9)};
    given.extents = {from(1, 40)};
    view.step = (1 << bits) * (from(0, 1) > 0 ? 1 : -1);
    view.start = -view.step * most + from(0, static_cast<int>(given.extents[0]) - 1);
  }
  given.fill = exact_ ? Fill::whole : Fill::real;
  const bool alone = std::accumulate(grid_.begin(), grid_.end(), 1, std::multiplies<>()) == 1;
  add_tensor(alone && from(0, 1) > 0 ? Access::in_out : Access::in, types[static_cast<std::size_t>(from(0, 3))],
             std::move(given));
  if (from(0, 1) > 0) {
    view.scalar = static_cast<Name>(values_.size());
    program_.parameters.push_back({Access::scalar, i32, 0});
    program_.given.push_back({.scalar = static_cast<double>(view.start)});
    values_.push_back({i32, {}, 0x1p31, true});
    memory_most_.push_back(0);
  }
  far_view_ = std::move(view);
}

/// From a separate random source, like the far view.
void Generator::make_list() {
  std::mt19937_64 random(program_.seed * 0x9E3779B97F4A7C15ull + 41);
  const auto from = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  if (oversized_ || from(0, 11) > 0) return;
  constexpr std::array types = {ElementType::f32, ElementType::bf16, ElementType::i32, ElementType::u8,
                                ElementType::f16};
  const ElementType type = types[static_cast<std::size_t>(from(0, 4))];
  const bool alone = std::accumulate(grid_.begin(), grid_.end(), 1, std::multiplies<>()) == 1;
  const Access access = alone && from(0, 2) > 0 ? Access::in_out : Access::in;
  list_ = List{static_cast<int>(program_.parameters.size()), from(1, 4)};
  const int rank = from(1, 3), unit = from(0, 1) > 0 ? 8 : 1, fast = from(0, 3) > 0 ? rank - 1 : from(0, rank - 1);
  for (int i = 0; i < list_->tensors; ++i) {
    Given given;
    for (int axis = 0; axis < rank; ++axis)
      given.extents.push_back(from(0, 15) == 0 ? 0 : unit * from(1, rank == 1 ? 40 : rank == 2 ? 8 : 4));
    given.fill = exact_ ? Fill::whole : Fill::real;
    if (fast + 1 < rank || from(0, 3) == 0) {  // another axis is contiguous, or there are gaps between rows
      given.strides.resize(static_cast<std::size_t>(rank));
      given.strides[static_cast<std::size_t>(fast)] = 1;
      std::int64_t stride =
          std::max<std::int64_t>(given.extents[static_cast<std::size_t>(fast)], 1) + unit * from(0, 2);
      for (int axis = rank; axis-- > 0;) {
        const auto at = static_cast<std::size_t>(axis);
        if (axis == fast) continue;
        given.strides[at] = stride;
        stride *= std::max<std::int64_t>(given.extents[at], 1);
      }
    }
    if (from(0, 7) == 0) given.offset = from(1, 9);
    add_tensor(access, type, std::move(given));
    program_.parameters.back().list = list_->tensors + 1 - i;
  }
  program_.parameters.push_back({Access::scalar, i32, 0, false, 1});
  const int number = from(0, 3) > 0 ? list_->tensors : from(0, list_->tensors);
  program_.given.push_back({.scalar = static_cast<double>(number)});
  values_.push_back({i32, {}, 5, true});
  visible_.push_back(static_cast<Name>(values_.size()) - 1);
  memory_most_.push_back(0);
}

/// A place in the list's tensor with this number, which may not exist.
void Generator::reach_into_list(Name number) {
  const auto first = static_cast<std::size_t>(list_->first);
  const Parameter& parameter = program_.parameters[first];
  const auto rank = static_cast<std::size_t>(parameter.rank);
  of(number).used = true;
  const Name view = emit({.op = Op::member,
                          .type = parameter.type,
                          .shape = Extents(rank, 0),
                          .from = {number},
                          .attributes = {list_->first}},
                         0);
  Place place{view,
              list_->first,
              parameter.type,
              parameter.access,
              false,
              std::vector<Name>(rank, nothing),
              Extents(rank, 0),
              Extents(rank, 1)};
  for (std::size_t i = first; i < first + static_cast<std::size_t>(list_->tensors); ++i)
    for (std::size_t axis = 0; axis < rank; ++axis)
      place.extents[axis] = std::max(place.extents[axis], static_cast<int>(program_.given[i].extents[axis]));
  place.cut.assign(rank, Place::Cut::none);
  place.base = view;
  places_.push_back(std::move(place));
}

void Generator::reach_far() {
  const FarView& far = *far_view_;
  const auto rank = far.tile.size();
  const Parameter& parameter = program_.parameters[static_cast<std::size_t>(far.parameter)];
  const Name start = far.scalar != nothing ? far.scalar : literal(i32, far.start), zero = literal(i32, 0);
  const Name view = emit({.op = Op::slice,
                          .type = parameter.type,
                          .shape = Extents(rank, 0),
                          .from = {static_cast<Name>(far.parameter), start, literal(i32, far.tile[0])},
                          .attributes = {0, far.step},
                          .fixed = 1},
                         0);
  Place place{
      view, far.parameter, parameter.type, parameter.access, false, std::vector<Name>(rank, nothing), Extents(rank, 0),
      {}};
  place.extents.assign(far.tile.begin(), far.tile.end());
  place.cut.assign(rank, Place::Cut::sliced);
  Statement load{.op = Op::load, .type = parameter.type, .shape = far.tile, .from = {view}, .fixed = 1};
  load.from.resize(rank + 1, zero);
  load.attributes = {padding_of(parameter.type)};
  emit(std::move(load), memory_most_[static_cast<std::size_t>(far.parameter)]);
  if (place.writable()) {
    const Name value = limit(want(parameter.type, far.tile, 1), 64);
    Statement store{.op = Op::store, .type = parameter.type, .shape = far.tile, .from = {value, view}, .fixed = 2};
    store.from.resize(rank + 2, zero);
    for (const Name name : store.from) of(name).used = true;
    written_.insert(far.parameter);
    body_->push_back(std::move(store));
  }
  places_.push_back(std::move(place));
}

void Generator::make_tensor(Access access) {
  ElementType type = stored_type();
  if (access == Access::in_out && chance(50)) type = chance(60) ? ElementType::f32 : ElementType::i32;
  std::int64_t reach = 0;
  if (far_ && chance(50)) {
    // The last row's offset exceeds 31 bits, or 32 bits so that it wraps; with small elements, to limit the space
    // between rows.
    type = chance(50) ? ElementType::u8 : chance(50) ? ElementType::f16 : ElementType::bf16;
    reach = std::int64_t{1} << (type == ElementType::u8 && chance(50) ? 32 : 31);
    far_ = false;
  }
  const int rank = oversized_ && chance(60) ? 2 : chance(25) ? 1 : chance(70) ? 2 : 3;
  const auto parameter = static_cast<int>(program_.parameters.size());
  Given given;
  for (int axis = 0; axis < rank; ++axis) {
    int length =
        one_of(palette_) * between(1, access == Access::in ? 3 : 2) + (chance(round_ ? 10 : 30) ? between(-2, 2) : 0);
    if (rank == 3) length = std::min(length, round_ ? 32 : 20);
    if (round_ && chance(60)) length = (length + 15) / 16 * 16;
    given.extents.push_back(chance(3) ? 0 : chance(6) ? 1 : std::clamp(length, 1, oversized_ ? 300 : 200));
  }
  if (oversized_ && rank == 1) given.extents[0] = between(30'000, 36'000);
  if (access != Access::in) {
    Owner owner{parameter, rank < static_cast<int>(grid_.size()) || chance(25), shuffled(rank), {}};
    owner.axes.resize(owner.flat ? 1 : grid_.size());
    for (std::size_t i = 0; i < owner.axes.size(); ++i) {
      const int blocks = owner.flat ? std::accumulate(grid_.begin(), grid_.end(), 1, std::multiplies<>()) : grid_[i];
      const int tile = chance(20) ? 1 : one_of(palette_);
      owner.tile.push_back(tile);
      // CTAs fill the axis, the last one possibly beyond its end; or it has more or less than they fill.
      std::int64_t& length = given.extents[static_cast<std::size_t>(owner.axes[i])];
      if (length != 0 && chance(90)) length = std::max(1, blocks * tile - (chance(50) ? between(0, tile - 1) : 0));
    }
    owners_.push_back(owner);
  }
  given.fill = fill();
  make_layout(given, access, reach);
  add_tensor(access, type, std::move(given));
}

Fill Generator::fill() {
  return exact_       ? Fill::whole
         : special_   ? (chance(60) ? Fill::special : Fill::wide)
         : chance(35) ? Fill::whole
         : chance(75) ? Fill::real
                      : Fill::wide;
}

void Generator::add_tensor(Access access, ElementType type, Given given) {
  const std::size_t rank = given.extents.size();
  program_.parameters.push_back({access, type, static_cast<int>(rank)});
  values_.push_back({type, Extents(rank, 0), 0, true});
  // Reals that CTAs both accumulate into and read keep a sum below this.
  memory_most_.push_back(std::max(largest(given.fill, type), access == Access::in ? 0.0 : 1e4));
  program_.given.push_back(std::move(given));
}

/// Strides: arbitrary; or with at least this many elements from the first row to the last.
void Generator::make_layout(Given& given, Access access, std::int64_t reach) {
  if (chance(15)) given.offset = round_ && chance(60) ? 4 * between(1, 4) : between(1, 9);
  const int rank = static_cast<int>(given.extents.size());
  if (reach == 0 && chance(60)) return;
  // Axes from the innermost outward, in any order; gaps between rows; one may be reversed, or have stride 0 in an In.
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.rbegin(), order.rend(), 0);
  if (chance(25)) shuffle(order);
  given.strides.resize(static_cast<std::size_t>(rank));
  std::int64_t stride = chance(8) ? 2 : 1;
  for (const int axis : order) {
    const auto a = static_cast<std::size_t>(axis);
    given.strides[a] = stride;
    stride *= std::max<std::int64_t>(given.extents[a], 1);
    if (chance(50)) stride += chance(round_ ? 30 : 50) ? between(1, 5) : 16 - stride % (chance(70) ? 16 : 8);
  }
  const auto outermost = static_cast<std::size_t>(order.back());
  if (const std::int64_t steps = given.extents[outermost] - 1; reach > 0 && steps > 0 && steps < 300) {
    const std::int64_t apart = (reach + steps - 1) / steps;
    given.strides[outermost] = chance(50) ? apart + between(0, 5) : (apart + 15) / 16 * 16;
  }
  if (chance(15)) {
    std::int64_t& changed = given.strides[static_cast<std::size_t>(between(0, rank - 1))];
    const bool repeats = access == Access::in && chance(50);
    changed = repeats ? 0 : -changed;
  }
}

/// Two tensors in one memory: with common elements, or with interleaved rows.
void Generator::share_memory() {
  std::vector<std::size_t> tensors;
  for (std::size_t i = 0; i < program_.given.size(); ++i)
    if (program_.parameters[i].access != Access::scalar) tensors.push_back(i);
  if (tensors.size() < 2) return;
  shuffle(tensors);
  const auto [first, second] = std::minmax(tensors[0], tensors[1]);
  Given &a = program_.given[first], &b = program_.given[second];
  b.shares = static_cast<int>(first);
  const bool alike = program_.parameters[first].type == program_.parameters[second].type &&
                     program_.parameters[first].rank == 2 && program_.parameters[second].rank == 2;
  if (alike && chance(60)) {
    const std::int64_t row = std::max(a.extents[1], b.extents[1]);
    a.strides = b.strides = {2 * row, 1};
    b.offset = row;
  } else {
    b.strides.clear();
    b.offset = 0;
    a.offset = 0;  // valid for elements of any size
  }
}

Name Generator::grid_extent(std::size_t axis) {
  if (chance(40)) {
    for (const Owner& owner : owners_) {
      if (owner.flat) continue;
      const auto tensor_axis = static_cast<std::size_t>(owner.axes[axis]);
      const std::int64_t length = program_.given[static_cast<std::size_t>(owner.parameter)].extents[tensor_axis];
      if ((length + owner.tile[axis] - 1) / owner.tile[axis] != grid_[axis]) continue;
      const Name extent = emit(
          {.op = Op::extent, .type = ElementType::i32, .from = {owner.parameter}, .attributes = {owner.axes[axis]}},
          200);
      if (owner.tile[axis] == 1) return extent;
      return binary(Op::cdiv, extent, literal(ElementType::i32, owner.tile[axis]), 200);
    }
  }
  for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
    if (program_.parameters[i] != Parameter{Access::scalar, ElementType::i32, 0}) continue;
    if (static_cast<int>(program_.given[i].scalar) == grid_[axis] || chance(30)) {
      program_.given[i].scalar = grid_[axis];
      return static_cast<Name>(i);
    }
    break;
  }
  return literal(ElementType::i32, grid_[axis]);
}

void Generator::make_grid() {
  if (grid_.empty()) return make_places();
  Statement statement{.kind = Statement::Kind::blocks, .type = ElementType::i32};
  // A scalar that is used as one extent must not be changed for another: its first use fixes it.
  for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
    const Name extent = grid_extent(axis);
    const auto scalar = static_cast<std::size_t>(extent);
    if (scalar < program_.given.size()) grid_[axis] = static_cast<int>(program_.given[scalar].scalar);
    statement.from.push_back(extent);
  }
  for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
    const auto scalar = static_cast<std::size_t>(statement.from[axis]);
    if (scalar < program_.given.size()) grid_[axis] = static_cast<int>(program_.given[scalar].scalar);
  }
  statement.to = static_cast<Name>(values_.size());
  for (const int blocks : grid_) {
    visible_.push_back(static_cast<Name>(values_.size()));
    values_.push_back({ElementType::i32, {}, static_cast<double>(blocks), true});
  }
  body_->push_back(statement);
  make_places();
}

void Generator::make_places() {
  Name first_block = nothing, flat = nothing;
  for (const Statement& s : *body_)
    if (s.kind == Statement::Kind::blocks) first_block = s.to;
  for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
    const Parameter& parameter = program_.parameters[i];
    if (parameter.access == Access::scalar || parameter.list > 0) continue;
    const auto rank = static_cast<std::size_t>(parameter.rank);
    Place place{static_cast<Name>(i),
                static_cast<int>(i),
                parameter.type,
                parameter.access,
                false,
                std::vector<Name>(rank, nothing),
                Extents(rank, 0),
                {}};
    place.extents.assign(program_.given[i].extents.begin(), program_.given[i].extents.end());
    place.cut.assign(rank, Place::Cut::none);
    const auto owner = std::find_if(owners_.begin(), owners_.end(),
                                    [&](const Owner& o) { return o.parameter == static_cast<int>(i); });
    if (owner != owners_.end() && first_block != nothing) {
      place.shared = parameter.access == Access::in_out && info(parameter.type).computes && chance(25);
      if (place.shared) place.by = commuting_atomic(parameter.type);
      if (owner->flat && !place.shared && flat == nothing) {
        flat = first_block;
        for (std::size_t axis = 1; axis < grid_.size(); ++axis) {
          const Name blocks = literal(ElementType::i32, grid_[axis]);
          flat = binary(Op::mul, flat, blocks, 200);
          body_->back().fixed = 3;
          flat = binary(Op::add, flat, first_block + static_cast<Name>(axis), 200);
          body_->back().fixed = 3;
        }
      }
      for (std::size_t k = 0; k < owner->axes.size() && !place.shared; ++k) {
        const auto axis = static_cast<std::size_t>(owner->axes[k]);
        const Name block = owner->flat ? flat : first_block + static_cast<Name>(k);
        if (chance(25)) {  // this axis is free within a slice that belongs to the CTA
          const Name tile = literal(ElementType::i32, owner->tile[k]);
          const Name start = binary(Op::mul, block, tile, 1000);
          body_->back().fixed = 3;
          place.view = emit({.op = Op::slice,
                             .type = place.type,
                             .shape = Extents(rank, 0),
                             .from = {place.view, start, tile},
                             .attributes = {owner->axes[k], 1},
                             .fixed = 7},
                            0);
          place.cut[axis] = Place::Cut::sliced;
          place.extents[axis] = owner->tile[k];
        } else {
          place.at[axis] = block;
          place.tile[axis] = owner->tile[k];
        }
      }
    }
    places_.push_back(place);
  }
  if (list_) {
    const Name block = first_block != nothing && between(0, 1) > 0 ? first_block : index();
    reach_into_list(between(0, 3) > 0 && block != nothing ? block : literal(i32, between(-1, list_->tensors)));
  }
  for (int i = between(0, 2); i > 0; --i) view_of(one_of(places_));
}

Name Generator::view(Op op, const Place& place, std::size_t rank, std::vector<std::int64_t> attributes) {
  return emit({.op = op,
               .type = place.type,
               .shape = Extents(rank, 0),
               .from = {place.view},
               .attributes = std::move(attributes),
               .fixed = 1},
              0);
}

bool Generator::unfold(Place& place) {
  const std::size_t rank = place.at.size();
  const int axis = between(0, static_cast<int>(rank) - 1);
  const auto a = static_cast<std::size_t>(axis);
  const auto behind = axis + 1;
  if (rank > 3 || place.at[a] != nothing || place.cut[a] == Place::Cut::sliced) return false;
  const int length = std::max(1, place.extents[a]);
  const int size = between(1, std::min(length, chance(50) ? 8 : 32));
  int step = size;
  if (chance(50)) step = place.access == Access::in ? between(1, size + 2) : size + between(0, 2);
  place.view = view(Op::unfold_view, place, rank + 1, {axis, size, step});
  place.at.insert(place.at.begin() + behind, nothing);
  place.tile.insert(place.tile.begin() + behind, 0);
  place.extents[a] = std::max(1, (length - size) / step + 1);
  place.extents.insert(place.extents.begin() + behind, size);
  if (place.cut[a] == Place::Cut::none) place.cut[a] = Place::Cut::windows;
  place.cut.insert(place.cut.begin() + behind, Place::Cut::window);
  return true;
}

// Tensors whose rows are contiguous.
bool Generator::flatten(Place& place) {
  const std::size_t rank = place.at.size();
  if (rank < 2 || place.transposed || !program_.given[static_cast<std::size_t>(place.parameter)].strides.empty())
    return false;
  const int axis = between(0, static_cast<int>(rank) - 2);
  const auto a = static_cast<std::size_t>(axis);
  const auto behind = axis + 1;
  for (const std::size_t one : {a, a + 1})
    if (place.at[one] != nothing || place.cut[one] != Place::Cut::none) return false;
  place.view = view(Op::flatten_view, place, rank - 1, {axis});
  place.extents[a] *= place.extents[a + 1];
  place.at.erase(place.at.begin() + behind);
  place.tile.erase(place.tile.begin() + behind);
  place.extents.erase(place.extents.begin() + behind);
  place.cut.erase(place.cut.begin() + behind);
  return true;
}

void Generator::view_of(Place place) {
  const int rank = static_cast<int>(place.at.size());
  if (chance(25) && (chance(35) ? flatten(place) : unfold(place))) {
  } else if (rank > 1 && chance(50)) {
    const std::vector<int> axes = shuffled(rank);
    place.view = emit({.op = Op::permute_view,
                       .type = place.type,
                       .shape = Extents(place.at.size(), 0),
                       .from = {place.view},
                       .attributes = {axes.begin(), axes.end()},
                       .fixed = 1},
                      0);
    const Place before = place;
    place.transposed = true;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto from = static_cast<std::size_t>(axes[i]);
      place.at[i] = before.at[from], place.tile[i] = before.tile[from], place.extents[i] = before.extents[from];
      place.cut[i] = before.cut[from];
    }
  } else {
    const int axis = between(0, rank - 1);
    const auto a = static_cast<std::size_t>(axis);
    if (place.at[a] != nothing) return;
    const int length = std::max(1, place.extents[a]);
    const Name counter = chance(40) ? index() : nothing;
    const Name start = counter != nothing ? counter : literal(ElementType::i32, between(-1, length));
    const Name extent = literal(ElementType::i32, chance(10) ? between(-1, 0) : between(1, length + 1));
    place.view = emit({.op = Op::slice,
                       .type = place.type,
                       .shape = Extents(place.at.size(), 0),
                       .from = {place.view, start, extent},
                       .attributes = {axis, chance(70) ? 1 : one_of(std::array{2, 3, -1, -2})},
                       .fixed = 1},
                      0);
    place.extents[a] = std::max(1, length / 2);
    place.cut[a] = Place::Cut::sliced;
  }
  places_.push_back(place);
}

}  // namespace tessera::internal::fuzz
