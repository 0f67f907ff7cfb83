// Statements of a random program: effects, Vars, loops, branches.
#include <algorithm>
#include <utility>

#include "fuzz/generator.hpp"

namespace tessera::internal::fuzz {
namespace {

constexpr int oversize = 128 * 256;  // too many elements for a CTA's registers, in an expression of several
constexpr double most_elements = 1 << 24;  // of all values of all CTAs: more would take the emulator minutes

}  // namespace

Program generate(std::uint64_t seed) {
  for (std::uint64_t draw = 0;; ++draw) {
    Generator generator(seed, draw);
    Program program = generator.run();
    if (generator.elements() <= most_elements) return program;
  }
}

Generator::Generator(std::uint64_t seed, std::uint64_t draw)
    : rng_(seed * 0x9E3779B97F4A7C15ull + 1 + draw * 0xD1B54A32D192ED03ull),
      aside_(seed * 0xD1342543DE82EF95ull + 3 + draw * 0xD1B54A32D192ED03ull) {
  program_.seed = seed;
}

double Generator::elements() const {
  double elements = 0;
  for (const Value& value : values_) elements += size_of(value.shape);
  for (const int blocks : grid_) elements *= blocks;
  return elements;
}

int Generator::between(int low, int high) {
  return low + static_cast<int>(rng_() % (static_cast<std::uint64_t>(high - low) + 1));
}

std::vector<int> Generator::shuffled(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  shuffle(numbers);
  return numbers;
}

int Generator::extent() { return chance(15) ? 1 : chance(round_ ? 95 : 85) ? one_of(palette_) : between(1, 20); }

Extents Generator::shape(int low, int high) {
  Extents shape(static_cast<std::size_t>(between(low, high)));
  for (int& length : shape) length = extent();
  const int most = chance(25) ? 2048 : 500;
  while (size_of(shape) > most) shape[static_cast<std::size_t>(between(0, static_cast<int>(shape.size()) - 1))] = 1;
  return shape;
}

Extents Generator::narrower(const Extents& to) {
  Extents shape = to;
  if (chance(30)) shape.erase(shape.begin(), shape.begin() + between(0, static_cast<int>(shape.size())));
  for (int& length : shape)
    if (chance(45)) length = 1;
  return shape;
}

ElementType Generator::type() {
  constexpr std::array types = {f32,
                                f32,
                                f32,
                                ElementType::f64,
                                ElementType::f8e4m3,
                                ElementType::f8e5m2,
                                ElementType::f16,
                                ElementType::bf16,
                                ElementType::tf32,
                                i32,
                                i32,
                                ElementType::i64,
                                ElementType::i8,
                                ElementType::i16,
                                ElementType::u8,
                                ElementType::u16,
                                ElementType::u32,
                                ElementType::u64,
                                ElementType::pred};
  return one_of(types);
}

ElementType Generator::stored_type() {
  constexpr std::array types = {f32,
                                f32,
                                f32,
                                f32,
                                f32,
                                f32,
                                ElementType::f64,
                                ElementType::f8e4m3,
                                ElementType::f8e5m2,
                                ElementType::f16,
                                ElementType::bf16,
                                i32,
                                i32,
                                i32,
                                ElementType::i64,
                                ElementType::i8,
                                ElementType::i16,
                                ElementType::u8,
                                ElementType::u16,
                                ElementType::u32,
                                ElementType::u64};
  const ElementType type = one_of(types);
  return aside_() % 24 == 0 ? ElementType::pred : type;
}

Program Generator::run() {
  special_ = chance(12);
  exact_ = !special_ && chance(25);
  oversized_ = chance(7);
  large_ = !oversized_ && chance(18);
  const int kind = between(0, 99);
  far_ = kind < 5;
  by_roles_ = kind >= 94;
  // From a separate random source, so that each seed's program is otherwise the one from before fused matmuls were
  // added.
  by_chain_ = !by_roles_ && !far_ && std::mt19937_64(program_.seed * 0x9E3779B97F4A7C15ull + 11)() % 40 == 0;
  by_roles_ |= by_chain_;
  if (by_roles_) oversized_ = large_ = false;
  round_ = large_ || oversized_ ? chance(70) : chance(40);
  constexpr std::array odd = {1, 2, 3, 4, 4, 5, 7, 8, 8, 9, 12, 16, 16, 17, 31, 32, 33};
  constexpr std::array round = {4, 8, 8, 16, 16, 32};
  constexpr std::array large = {16, 32, 64, 48, 24, 8};
  if (oversized_) palette_ = {128, 256};  // besides another extent: tensors are about as large
  while (palette_.size() < 3) palette_.push_back(large_ ? one_of(large) : round_ ? one_of(round) : one_of(odd));
  fuel_ = 1000;
  if (by_chain_)
    make_role_chain();
  else if (by_roles_)
    make_warp_specialized_matmul();
  else
    make_parameters();
  body_ = &program_.body;
  make_grid();
  if (chance(15)) {
    Hints hints;
    if (chance(60)) hints.warps = one_of(std::array{1, 2, 4, 8, 16, 32, 16});
    if (chance(60)) hints.stages = between(1, 6);
    if (chance(60)) hints.occupancy = between(1, 6);
    program_.hints.push_back(hints);
  }
  hint_further();
  if (chance(12)) require();
  if (chance(8)) check();
  if (chance(8)) print();
  fuel_ = between(10, 90);
  if (by_roles_) {
    if (by_chain_)
      chain_by_roles();
    else
      warp_specialized_matmul();
    if (chance(12)) statements(1, between(1, 2));
    return std::move(program_);
  }
  const std::size_t first = visible_.size();
  if (far_view_) reach_far();
  if (large_) product(one_of(palette_));
  if (oversized_)
    for (int i = between(3, 5); i > 0; --i) oversized();
  const int depth = chance(85) ? 2 : 3;
  statements(depth, between(3, 8));
  // All writable tensors are written, and few results stay unused. One more store would hide those before it.
  for (const Place& place : places_where([](const Place& p) { return p.writable() && p.view == p.parameter; })) {
    const bool again = chance(10);
    if (again || !written_.contains(place.parameter)) store_to(Place(place));
  }
  use_leftovers(first);
  return std::move(program_);
}

/// Hints for clusters, and for one architecture: from a separate random source, so that each seed's program is
/// otherwise the one from before they were added.
void Generator::hint_further() {
  std::mt19937_64 random(program_.seed * 0xD1342543DE82EF95ull + 5);
  const auto one_in = [&](std::uint64_t count) { return random() % count == 0; };
  if (!one_in(by_roles_ ? 4 : 16)) return;
  Hints hints;
  hints.cluster = static_cast<int>(1 + random() % 8);
  if (one_in(3)) hints.stages = static_cast<int>(1 + random() % 6);
  if (one_in(3)) hints.warps = 1 << random() % 6;
  constexpr std::array archs = {"", "sm_90", "sm_90a", "sm_80", "sm_120"};
  hints.arch = archs[random() % archs.size()];
  // If a hint is given twice, the last one applies.
  program_.hints.insert(one_in(2) ? program_.hints.begin() : program_.hints.end(), hints);
}

void Generator::statements(int depth, int count) {
  while (count-- > 0 && fuel_ > 0) statement(depth);
}

void Generator::statement(int depth) {
  const int kind = between(0, 99);
  if (kind < 3 && oversized_) {
    oversized();
  } else if (kind < 6) {
    append();
  } else if (kind < 30) {
    some_effect();
  } else if (kind < 45) {
    const ElementType wanted = type();
    want(wanted, shape(0, 3), 2);
  } else if (kind < 55) {
    declare_var();
  } else if (kind < 63) {
    assign_some_var(assignable_);
  } else if (kind < 66) {
    const Name number = list_ ? index() : nothing;
    if (number != nothing)
      reach_into_list(number);
    else
      view_of(Place(one_of(places_)));
  } else if (kind < (large_ ? 78 : 69)) {
    product(large_ && chance(80) ? one_of(palette_) : between(1, 8));
  } else if (kind < 87) {
    if (depth > 0) loop(depth - 1);
  } else if (depth > 0) {
    branch(depth - 1);
  }
}

// Effects
// --------------------------------------------------------------------------------------------------------------------

std::vector<Generator::Place> Generator::places_where(bool (*holds)(const Place&)) const {
  std::vector<Place> found;
  std::copy_if(places_.begin(), places_.end(), std::back_inserter(found), holds);
  return found;
}

/// A shape that may be written to this place.
Extents Generator::tile_for(const Place& place, int most_elements) {
  Extents tile = place.tile;
  for (std::size_t axis = 0; axis < tile.size(); ++axis)
    if (tile[axis] == 0) tile[axis] = chance(45) ? std::clamp(place.extents[axis], 1, 40) : extent();
  for (std::size_t axis = 0; axis < tile.size(); ++axis)
    if (place.tile[axis] == 0 && size_of(tile) > most_elements) tile[axis] = between(1, 4);
  return tile;
}

/// One with more elements than threads have registers for; empty if the place has no axis that can be long.
Extents Generator::oversized_tile(const Place& place) {
  Extents tile = place.tile;
  std::vector<std::size_t> free;
  for (std::size_t axis = 0; axis < tile.size(); ++axis)
    if (tile[axis] == 0) free.push_back(axis), tile[axis] = one_of(std::array{128, 128, 256, 64, 8});
  if (free.empty()) return {};
  const std::size_t longest = one_of(free);
  tile[longest] = 1;
  const int others = size_of(tile);
  if (others >= 2 * oversize) return {};
  tile[longest] = (oversize + others - 1) / others + (chance(round_ ? 10 : 40) ? between(1, 3) : 0);
  return tile;
}

/// An effect on the tile of a place; `from` begins with the written value, the view, and the rows of a scatter.
void Generator::write(Op op, const Place& place, const Extents& tile, std::vector<Name> from) {
  Statement s{.op = op, .type = place.type, .shape = tile, .from = std::move(from)};
  const std::size_t first = s.from.size() - 2;  // rows replace the axes before it
  s.fixed = op == Op::scatter ? 6 : 2;
  if (is_atomic(op)) s.attributes = {0, static_cast<std::int64_t>(MemoryScope::device)};
  for (std::size_t axis = first; axis < tile.size(); ++axis) {
    const bool bound = place.at[axis] != nothing;
    if (bound) s.fixed |= 1u << s.from.size();
    s.from.push_back(bound ? place.at[axis] : coordinate((place.extents[axis] + tile[axis] - 1) / tile[axis]));
  }
  for (const Name name : s.from) of(name).used = true;
  written_.insert(place.parameter);
  body_->push_back(std::move(s));
  --fuel_;
}

/// The same, element by element.
void Generator::write_elements(Op op, const Place& place, const Extents& tile, Name value) {
  Statement s{.op = op, .type = place.type, .shape = tile, .from = {value, place.view}};
  name_elements(s, place, 1);
  for (const Name name : s.from) of(name).used = true;
  written_.insert(place.parameter);
  body_->push_back(std::move(s));
  --fuel_;
}
/// May a CTA write to any element?
bool Generator::is_free(const Place& place) {
  return std::ranges::all_of(place.at, [](Name at) { return at == nothing; });
}

void Generator::store_to(const Place& place) {
  const Extents tile = tile_for(place, chance(25) ? 4096 : 700);
  const int depth = between(2, 5);
  write(Op::store, place, tile, {limit(want(place.type, tile, depth), 64), place.view});
}

/// Rows of the CTA's own: c, c + step, ...; or arbitrary ones.
void Generator::scatter_to(const Place& place) {
  const Extents tile = tile_for(place, chance(25) ? 1500 : 400);
  if (is_free(place) && chance(25))
    return write_elements(Op::scatter_elements, place, tile, limit(want(place.type, tile, between(1, 3)), 64));
  if (chance(50)) {
    const Name rows = rows_for(tile[0], place.extents[0]);
    const int depth = between(1, 3);
    return write(Op::scatter, place, tile, {limit(want(place.type, tile, depth), 64), place.view, rows});
  }
  Name rows = emit({.op = Op::iota, .type = i32, .shape = {tile[0]}, .attributes = {0}}, tile[0]);
  if (chance(50)) {
    rows = binary(Op::mul, rows, literal(i32, one_of(std::array{-1, 2, 3})), 100);
    body_->back().fixed = 3;
  }
  rows = binary(Op::add, rows, chance(50) ? literal(i32, between(-1, tile[0])) : coordinate(place.extents[0]), 100);
  body_->back().fixed = 1;
  const int depth = between(1, 3);
  write(Op::scatter, place, tile, {limit(want(place.type, tile, depth), 64), place.view, rows});
}

void Generator::some_effect() {
  const auto stores = places_where([](const Place& p) { return p.writable(); });
  const auto scatters =
      places_where([](const Place& p) { return p.writable() && p.at[0] == nothing && p.tile[0] == 0; });
  const auto adds = places_where([](const Place& p) { return p.access == Access::in_out && info(p.type).computes; });
  const int kind = between(0, 9);
  if (kind < 2 && !scatters.empty()) return scatter_to(one_of(scatters));
  if (kind < 5 && !adds.empty()) return change(one_of(adds));
  if (!stores.empty()) store_to(one_of(stores));
}

/// Tiles next to each other in an InOut, each computed from the one before it.
void Generator::append() {
  const auto histories = places_where([](const Place& p) {
    return p.readable() && p.writable() && std::ranges::count(p.at, nothing) > 0 && std::ranges::count(p.tile, 0) > 0;
  });
  if (histories.empty()) return;
  Place place = one_of(histories);
  std::vector<std::size_t> free;
  for (std::size_t axis = 0; axis < place.at.size(); ++axis)
    if (place.at[axis] == nothing && place.tile[axis] == 0) free.push_back(axis);
  const std::size_t axis = one_of(free);
  for (std::size_t other = 0; other < place.at.size(); ++other)
    if (place.at[other] == nothing && other != axis) place.at[other] = coordinate(2);
  place.tile[axis] = between(1, 3);
  place.tile = tile_for(place, 400);
  const auto one_more = [&](Name at) {
    Place before = place, here = place;
    before.at[axis] = binary(Op::sub, at, literal(i32, 1), 20);
    here.at[axis] = at;
    const Name old = load_from(before, place.tile, nothing);
    const ElementType type = info(place.type).computes                    ? place.type
                             : info(place.type).kind == ElementKind::real ? f32
                                                                          : i32;
    const Name last = convert(old, type), more = want(type, place.tile, 1);
    const double most = std::min(of(last).most + of(more).most, largest_of(type));
    const Name next = limit(binary(Op::add, last, more, most), 64);
    write(Op::store, here, place.tile, {limit(convert(next, place.type), 64), place.view});
  };
  const Name first = chance(50) ? literal(i32, between(0, 2)) : coordinate(2);
  if (chance(50)) {
    one_more(first);
    for (int i = 1; i < 3; ++i) one_more(binary(Op::add, first, literal(i32, i), 20));
  } else {
    within(loop_of(loop_count()), [&] { one_more(binary(Op::add, first, visible_.back(), 20)); });
  }
}

/// An effect or a reduction of a tile too large for registers: an expression that uses loaded or gathered tiles more
/// than once.
void Generator::oversized() {
  const auto stores = places_where([](const Place& p) { return p.writable() && std::ranges::count(p.tile, 0) > 0; });
  if (stores.empty()) return;
  const Place place = one_of(stores);
  const Extents tile = oversized_tile(place);
  if (tile.empty()) return;
  const bool computes = info(place.type).computes;
  const ElementType type = computes ? place.type : info(place.type).kind == ElementKind::real ? f32 : i32;
  std::vector<Name> operands = {oversized_operand(type, tile, true)};
  Name value = operands[0];
  for (int i = between(2, 5); i > 0; --i) {
    const bool again = operands.size() > 1 && chance(50);
    const Name other = again ? one_of(operands) : oversized_operand(type, tile, false);
    if (!again) operands.push_back(other);
    const double x = of(value).most, y = of(other).most;
    const Op op = one_of(std::array{Op::add, Op::add, Op::sub, Op::mul, Op::maximum});
    const double most = op == Op::mul ? x * y : op == Op::maximum ? std::max(x, y) : x + y;
    value = limit(binary(op, value, other, std::min(most, type == f32 ? most : largest_of(type))), 1e4);
  }
  const int kind = between(0, 9);
  if (kind < 1) {
    const int axis = between(0, static_cast<int>(tile.size()) - 1);
    constexpr std::array ops = {Op::sum, Op::max, Op::min, Op::argmax};
    reduction(one_of(ops), value, axis);
    return;
  }
  const Name written = limit(convert(value, place.type), 64);
  if (kind < 5 && place.at[0] == nothing && place.tile[0] == 0) {
    const Name rows = rows_for(tile[0], place.extents[0]);
    write(Op::scatter, place, tile, {written, place.view, rows});
  } else {
    const bool adds = kind < 8 && place.access == Access::in_out && computes;
    write(adds ? place.by : Op::store, place, tile, {written, place.view});
  }
}

/// Stores unused values, converted to the type of a tensor.
void Generator::use_leftovers(std::size_t first_value) {
  std::vector<Name> left;
  for (std::size_t i = first_value; i < visible_.size(); ++i)
    if (!of(visible_[i]).used) left.push_back(visible_[i]);
  for (const Name var : vars_)
    if (!of(var).used) left.push_back(read(var));
  const auto stores = places_where([](const Place& p) { return p.writable(); });
  if (stores.empty()) return;
  if (left.size() > 5) left.resize(5);
  for (const Name name : left) {
    const Place& place = one_of(stores);
    const Extents tile = tile_for(place, chance(25) ? 1500 : 400);
    write(Op::store, place, tile, {limit(adapt(name, place.type, tile), 64), place.view});
  }
}

// Vars and control
// --------------------------------------------------------------------------------------------------------------------

Name Generator::new_var(Name initial, double most) {
  const auto var = static_cast<Name>(values_.size());
  const ElementType type = of(initial).type;
  const Extents tile = of(initial).shape;
  of(initial).used = true;
  values_.push_back({type, tile, most, true});
  body_->push_back({.kind = Statement::Kind::declare, .type = type, .shape = tile, .to = var, .from = {initial}});
  vars_.push_back(var);
  assignable_.push_back(var);
  return var;
}

void Generator::declare_var() {
  const bool product = large_ && chance(60);  // the addend of mma
  const ElementType type = product ? f32 : this->type();
  const Extents tile = product ? shape(2, 2) : shape(0, 2);
  const Name initial = chance(40) ? literal(type, 0, tile) : want(type, tile, 2);
  new_var(initial, type == f32 ? std::max(of(initial).most, 64.0) : largest_of(type));
}

void Generator::assign(Name var, Name value) {
  of(value).used = true;
  of(var).used = false;
  body_->push_back(
      {.kind = Statement::Kind::assign, .type = of(var).type, .shape = of(var).shape, .to = var, .from = {value}});
  --fuel_;
}

void Generator::assign_some_var(const std::vector<Name>& choices) {
  if (choices.empty()) return;
  const Name var = one_of(choices);
  const ElementType type = of(var).type;
  const Extents tile = of(var).shape;
  Name value = nothing;
  if (type == f32 && tile.size() == 2 && chance(40)) {
    constexpr std::array types = {f32, ElementType::tf32, ElementType::f16, ElementType::bf16};
    const ElementType factors = one_of(types);
    const int k = large_ ? 16 * between(1, 4) : extent();
    const Name a = want(factors, {tile[0], k}, 1), b = want(factors, {k, tile[1]}, 1), c = read(var);
    value =
        emit({.op = Op::mma, .type = f32, .shape = tile, .from = {a, b, c}}, of(a).most * of(b).most * k + of(c).most);
  } else if (info(type).computes && chance(65)) {
    const Name old = read(var);
    Name other = want(type, chance(70) ? tile : narrower(tile), 2);
    if (other == old) other = leaf(type, tile);
    constexpr std::array ops = {Op::add, Op::add, Op::mul, Op::sub, Op::maximum};
    const Op op = one_of(ops);
    const double x = of(old).most, y = of(other).most;
    value = binary(op, old, other, op == Op::mul ? x * y : op == Op::maximum ? std::max(x, y) : x + y);
  } else {
    value = want(type, tile, 3);
  }
  assign(var, limit(value, of(var).most));  // it keeps within its bounds, however often a loop assigns it
}

/// Runs `fill`, whose statements become the body of the loop or branch.
void Generator::within(Statement s, const std::function<void()>& fill) {
  for (const Name name : s.from) of(name).used = true;
  const std::size_t visible = visible_.size(), vars = vars_.size(), assignable = assignable_.size(),
                    places = places_.size();
  if (s.kind == Statement::Kind::loop) visible_.push_back(s.to);
  Body* const around = std::exchange(body_, &s.body);
  fill();
  body_ = around;
  visible_.resize(visible);  // values of the body are not visible after it
  vars_.resize(vars);
  assignable_.resize(assignable);
  places_.resize(places);
  body_->push_back(std::move(s));
}

Statement Generator::loop_of(Name count) {
  const auto counter = static_cast<Name>(values_.size());
  values_.push_back({i32, {}, 7, true});
  Statement loop{.kind = Statement::Kind::loop, .type = i32, .to = counter, .from = {count}, .fixed = 1};
  if (chance(15)) loop.attributes = {0, one_of(std::array{1, 2, 4})};
  return loop;
}

/// The trip count of a loop: rarely more than a few.
Name Generator::loop_count() {
  const int kind = between(0, 9);
  if (kind < 2) return literal(i32, between(0, 4));
  if (kind < 5) {
    // The start of a far view is about 2^31, so it cannot be a count.
    const Name far = far_view_ ? far_view_->scalar : nothing;
    for (std::size_t i = 0; i < program_.parameters.size(); ++i)
      if (program_.parameters[i] == Parameter{Access::scalar, i32, 0} && static_cast<Name>(i) != far)
        return static_cast<Name>(i);
  }
  if (kind < 8) {
    const Place& place = one_of(places_);
    const std::vector<std::int64_t>& extents = program_.given[static_cast<std::size_t>(place.parameter)].extents;
    const int axis = between(0, static_cast<int>(extents.size()) - 1);
    const std::int64_t length = extents[static_cast<std::size_t>(axis)];
    const int tile = std::max(1, std::max(extent(), static_cast<int>(length) / 6));
    const Name all = emit({.op = Op::extent, .type = i32, .from = {place.tensor()}, .attributes = {axis}}, 200);
    if (tile == 1) return all;
    const Name by = literal(i32, tile);
    return binary(Op::cdiv, all, by, 7);
  }
  if (kind == 8) {
    // Computed from infinities it may be the largest integer, with which a loop would not end.
    if (const Name near = index(); near != nothing) return special_ ? binary(Op::modulo, near, literal(i32, 5), 5) : near;
  }
  const Name any = want(i32, {}, 2);
  return binary(Op::modulo, any, literal(i32, between(2, 4)), 4);
}

void Generator::loop(int depth) {
  if (assignable_.empty() || chance(50)) declare_var();
  if (chance(40)) declare_var();
  const std::vector<Name> outer = assignable_;
  const std::size_t first = visible_.size();
  Statement s = loop_of(loop_count());
  if (chance(20)) s.attributes = {1};
  within(std::move(s), [&] {
    statements(depth, between(0, 3));
    for (int i = between(1, 2); i > 0; --i) assign_some_var(outer);
    statements(depth, between(0, 1));
    if (chance(40)) use_leftovers(first);
  });
}

void Generator::branch(int depth) {
  const Name condition = want(ElementType::pred, {}, 2);
  const std::vector<Name> outer = assignable_;
  within({.kind = Statement::Kind::branch, .type = ElementType::pred, .from = {condition}}, [&] {
    statements(depth, between(0, 3));
    if (!outer.empty() && chance(60)) assign_some_var(outer);
    if (outer.empty() || chance(60)) some_effect();
  });
}

void Generator::require() {
  const Place& place = one_of(places_);
  if (place.base != nothing) return;  // the kernel may choose the tensor
  const std::int64_t length = program_.given[static_cast<std::size_t>(place.parameter)].extents[0];
  const Name all = emit({.op = Op::extent, .type = i32, .from = {place.tensor()}, .attributes = {0}}, 200);
  const Name other = literal(i32, static_cast<double>(length) + (chance(15) ? 1 : 0));
  const Name condition = binary(one_of(std::array{Op::equal, Op::less_equal}), other, all, 1);
  body_->push_back({.op = Op::require, .type = ElementType::pred, .from = {condition}, .attributes = {0}});
}

/// A check of a condition that holds for every result.
void Generator::check() {
  const Name x = want(chance(50) ? i32 : f32, {}, 2);
  const Name condition = binary(Op::logical_or, binary(Op::equal, x, x, 1), binary(Op::not_equal, x, x, 1), 1);
  body_->push_back({.op = Op::check, .type = ElementType::pred, .from = {condition}, .attributes = {0}});
}

/// In a branch that is never executed: nobody would read its lines.
void Generator::print() {
  const Place& place = one_of(places_);
  const Name all = emit({.op = Op::extent, .type = i32, .from = {place.tensor()}, .attributes = {0}}, 200);
  const Name condition = binary(Op::less, all, literal(i32, 0), 1);
  const Name tile = want(type(), shape(0, 3), 2);
  within({.kind = Statement::Kind::branch, .type = ElementType::pred, .from = {condition}}, [&] {
    body_->push_back({.op = Op::print, .type = i32, .from = {all, tile}, .attributes = {0}});
  });
}

}  // namespace tessera::internal::fuzz
