// Values of a random program: ops that produce a wanted type and shape.
#include <algorithm>
#include <cmath>

#include "fuzz/custom.hpp"
#include "fuzz/generator.hpp"
#include "graph/evaluate.hpp"

namespace tessera::internal::fuzz {
namespace {

bool is_real(ElementType type) { return info(type).kind == ElementKind::real; }
bool computes(ElementType type) { return info(type).computes; }

bool stretches(const Extents& from, const Extents& to) {
  if (from.size() > to.size()) return false;
  for (std::size_t i = 1; i <= from.size(); ++i)
    if (from[from.size() - i] != 1 && from[from.size() - i] != to[to.size() - i]) return false;
  return true;
}

}  // namespace

double Generator::largest_of(ElementType type) {
  if (!is_real(type)) return static_cast<double>(highest(type)) + 1;
  switch (type) {
    case ElementType::f16:
      return 1.1e3;
    default:
      return 1.1 * comfortable;
  }
}

// Single statements
// --------------------------------------------------------------------------------------------------------------------

Name Generator::emit(Statement statement, double most) {
  for (const Name name : statement.from) of(name).used = true;
  statement.to = static_cast<Name>(values_.size());
  values_.push_back({statement.type, statement.shape, most, false});
  const bool value = !is_view(statement.op) || statement.kind != Statement::Kind::apply;
  if (statement.op == Op::constant && statement.kind == Statement::Kind::apply) values_.back().used = true;
  if (!value) values_.back().used = true;
  body_->push_back(std::move(statement));
  if (value) visible_.push_back(body_->back().to);
  --fuel_;
  return body_->back().to;
}

Name Generator::literal(ElementType type, double value, const Extents& shape) {
  // A number that the type represents, as the language converts a literal.
  const Cell cell = info(type).kind == ElementKind::real
                        ? evaluate_cast(ElementType::f64, type, cell_of(value))
                        : with_host(host_type(type), [&]<class T>(T) { return cell_of(static_cast<T>(value)); });
  return emit({.op = Op::constant, .type = type, .shape = shape, .attributes = {encode(type, cell)}}, std::abs(value));
}

Name Generator::unary(Op op, Name a, double most) {
  return emit({.op = op, .type = result_type(op, of(a).type), .shape = of(a).shape, .from = {a}}, most);
}

/// The common shape to which all of them broadcast.
Extents Generator::common_shape(const std::vector<Name>& names) const {
  Extents shape;
  for (const Name name : names) {
    const Extents& extents = of(name).shape;
    if (extents.size() > shape.size()) shape.insert(shape.begin(), extents.size() - shape.size(), 1);
    for (std::size_t i = 1; i <= extents.size(); ++i)
      shape[shape.size() - i] = std::max(shape[shape.size() - i], extents[extents.size() - i]);
  }
  return shape;
}

Name Generator::binary(Op op, Name a, Name b, double most) {
  const Extents shape = common_shape({a, b});
  return emit({.op = op, .type = result_type(op, of(a).type), .shape = shape, .from = {a, b}}, most);
}

Name Generator::ternary(Op op, Name a, Name b, Name c, double most) {
  const Extents shape = common_shape({a, b, c});
  return emit({.op = op, .type = result_type(op, of(a).type), .shape = shape, .from = {a, b, c}}, most);
}

Name Generator::reduction(Op op, Name a, int axis) {
  Value result = of(a);
  const int count = result.shape[static_cast<std::size_t>(axis)];
  result.shape[static_cast<std::size_t>(axis)] = 1;
  if (op == Op::argmax)
    return emit({.op = op, .type = ElementType::i32, .shape = result.shape, .from = {a}, .attributes = {axis}}, count);
  const Name name = emit({.op = op, .type = result.type, .shape = result.shape, .from = {a}, .attributes = {axis}},
                         op == Op::sum    ? result.most * count
                         : op == Op::prod ? std::pow(std::max(result.most, 1.0), count)
                                          : result.most);
  return limit(name, comfortable);
}

Name Generator::reshape(Name a, const Extents& shape) {
  if (of(a).shape == shape) return a;
  return emit({.op = Op::reshape, .type = of(a).type, .shape = shape, .from = {a}}, of(a).most);
}

Name Generator::limit(Name value, double most) {
  if (special_ || !computes(of(value).type) || !is_real(of(value).type) || of(value).most <= most) return value;
  const double scale = std::exp2(-std::ceil(std::log2(of(value).most / (exact_ ? most : most / 16))));
  const double result = of(value).most * scale;
  return binary(Op::mul, value, literal(of(value).type, scale), result);
}

Name Generator::read(Name var) {
  of(var).used = true;
  return emit({.kind = Statement::Kind::read, .type = of(var).type, .shape = of(var).shape, .from = {var}},
              of(var).most);
}

/// Converts to another type, scaled or wrapped to its range.
Name Generator::convert(Name value, ElementType type) {
  if (of(value).type == type) return value;
  const ElementType from = of(value).type;
  const bool is_unsigned = !is_real(from) && lowest(from) == 0;  // numbers below 0 would become large
  if (is_real(type) && !is_real(from) && computes(from) && (is_unsigned || (of(value).most > 1000 && chance(70))))
    value = binary(Op::modulo, value, literal(from, one_of(std::array{7, 16, 100})), 100);
  double most = of(value).most;
  const bool narrow = type == ElementType::f16;
  if (is_real(type) && !is_real(from) && narrow && most > 1000) {
    value = convert(value, ElementType::f32);
    most = of(value).most;
  }
  if (narrow && computes(of(value).type)) {
    value = limit(value, 1000);
    most = of(value).most;
  }
  if (!is_real(type)) most = lowest(type) == 0 ? largest_of(type) : std::min(most, largest_of(type));
  if (type == ElementType::pred) most = 1;
  const Name result = emit({.op = Op::cast, .type = type, .shape = of(value).shape, .from = {value}}, most * 1.01);
  return computes(type) && is_real(type) ? limit(result, comfortable) : result;
}

/// Converts any value to a type and shape.
Name Generator::adapt(Name value, ElementType type, const Extents& shape) {
  const bool fits = size_of(of(value).shape) == size_of(shape) || stretches(of(value).shape, shape);
  if (!fits) {
    if (!computes(of(value).type))
      value = convert(value, is_real(of(value).type) ? ElementType::f32 : ElementType::i32);
    const int rank = static_cast<int>(of(value).shape.size());
    for (int axis = 0; axis < rank; ++axis)
      if (of(value).shape[static_cast<std::size_t>(axis)] > 1)
        value = reduction(one_of(std::array{Op::sum, Op::max, Op::min}), value, axis);
  }
  value = convert(value, type);
  if (size_of(of(value).shape) == size_of(shape)) return reshape(value, shape);
  if (!stretches(of(value).shape, shape)) value = reshape(value, {});
  return emit({.op = Op::broadcast, .type = type, .shape = shape, .from = {value}}, of(value).most);
}

// Memory
// --------------------------------------------------------------------------------------------------------------------

Name Generator::index() {
  std::vector<Name> found;
  for (const Name name : visible_)
    if (of(name).type == ElementType::i32 && of(name).shape.empty() && of(name).most <= 10) found.push_back(name);
  return found.empty() ? nothing : found[static_cast<std::size_t>(between(0, static_cast<int>(found.size()) - 1))];
}

/// An index along an axis of so many tiles: mostly within it, sometimes far outside.
Name Generator::coordinate(int tiles) {
  const Name near = chance(75) ? index() : nothing;
  const int kind = between(0, 99);
  if (near != nothing && kind < 55) return near;
  if (near != nothing && kind < 65) {
    const Op op = one_of(std::array{Op::add, Op::sub, Op::mul});
    return binary(op, near, literal(ElementType::i32, between(1, 2)), 20);
  }
  if (kind < 75) return literal(ElementType::i32, 0);
  if (kind < 88) return literal(ElementType::i32, between(0, std::max(0, tiles - 1)));
  if (kind < 91) {
    constexpr std::array far = {-1.0, -3.0, 1.0 * (1 << 20), -0x1p31, 0x1p31 - 1};
    return literal(ElementType::i32, one_of(far));
  }
  // One that depends on data.
  std::vector<Name> numbers;
  for (const Name name : visible_)
    if (computes(of(name).type) && !of(name).shape.empty()) numbers.push_back(name);
  Name any = load(ElementType::i32, {});
  if (any == nothing && !numbers.empty()) any = adapt(one_of(numbers), ElementType::i32, {});
  if (any == nothing) return literal(ElementType::i32, 0);
  if (chance(10)) return any;  // however large
  const Name within = binary(Op::modulo, any, literal(ElementType::i32, std::max(1, tiles) + between(0, 1)), tiles + 1);
  return chance(80) ? within : binary(Op::sub, within, literal(ElementType::i32, 1), tiles + 1);
}

std::int64_t Generator::padding_of(ElementType type) {
  Cell padding;
  const bool padded = chance(25);
  if (is_real(type)) {
    double value = padded ? between(-3, 3) : 0.0;
    if (special_) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      const int kind = between(0, 99);
      const bool infinite = kind < 20 && type != ElementType::f8e4m3;  // e4m3 has no infinity
      if (infinite) value = kind < 10 ? -infinity : infinity;
      if (kind >= 20 && kind < 30) value = kind < 25 ? std::numeric_limits<double>::quiet_NaN() : -0.0;
    }
    padding = type == ElementType::f64 ? cell_of(value) : cell_of(static_cast<float>(value));
  } else if (padded) {
    padding = decode(type, between(lowest(type) == 0 ? 0 : -3, type == ElementType::pred ? 1 : 127));
  }
  return encode(type, padding);
}

Name Generator::load_from(const Place& place, const Extents& shape, Name rows) {
  Statement s{.op = rows == nothing ? Op::load : Op::gather, .type = place.type, .shape = shape, .from = {place.view}};
  s.fixed = 1;
  if (rows != nothing) s.from.push_back(rows);
  for (std::size_t axis = rows == nothing ? 0 : 1; axis < shape.size(); ++axis) {
    if (place.at[axis] != nothing) s.fixed |= 1u << s.from.size();
    s.from.push_back(place.at[axis] != nothing ? place.at[axis]
                                               : coordinate((place.extents[axis] + shape[axis] - 1) / shape[axis]));
  }
  s.attributes = {padding_of(place.type)};
  return emit(std::move(s),
              std::max(memory_most_[static_cast<std::size_t>(place.parameter)], is_real(place.type) ? 3.0 : 300.0));
}

Name Generator::load(ElementType type, const Extents& shape) {
  std::vector<Place> fitting = sources_of(shape);
  std::erase_if(fitting, [&](const Place& place) { return place.type != type; });
  if (!fitting.empty()) return load_from(one_of(fitting), shape, nothing);
  std::vector<const Place*> any;
  for (const Place& place : places_)
    if (place.readable() && place.type == type) any.push_back(&place);
  if (any.empty()) return nothing;
  // The same number of elements in another shape: along one free axis.
  const Place place = *one_of(any);
  Extents tile = place.tile;
  int rest = size_of(shape);
  for (int& length : tile) {
    length = std::max(length, 1);
    if (rest % length != 0) return nothing;
    rest /= length;
  }
  for (std::size_t axis = 0; axis < tile.size(); ++axis) {
    if (place.tile[axis] != 0) continue;
    tile[axis] = rest;
    rest = 1;
  }
  if (rest != 1) return nothing;
  return reshape(load_from(place, tile, nothing), shape);
}

/// Places from which a tile of the shape can be loaded.
std::vector<Generator::Place> Generator::sources_of(const Extents& shape) const {
  std::vector<Place> sources;
  for (const Place& place : places_) {
    bool fits = place.readable() && place.at.size() == shape.size();
    for (std::size_t axis = 0; axis < shape.size() && fits; ++axis)
      fits = place.tile[axis] == 0 || place.tile[axis] == shape[axis];
    if (fits) sources.push_back(place);
  }
  return sources;
}

Name Generator::gather(ElementType type, const Extents& shape) {
  if (shape.empty()) return nothing;
  std::vector<Place> sources = sources_of(shape);
  std::erase_if(sources, [](const Place& place) { return place.tile[0] != 0; });
  const auto prefer = [&](auto&& better) {
    if (std::ranges::any_of(sources, better)) std::erase_if(sources, std::not_fn(better));
  };
  if (chance(70)) prefer([&](const Place& place) { return place.type == type; });
  if (chance(oversized_ ? 75 : 40)) prefer([](const Place& place) { return place.access == Access::in; });
  if (sources.empty()) return nothing;
  const Place place = one_of(sources);
  const Name rows = rows_for(shape[0], place.extents[0]);
  return convert(load_from(place, shape, rows), type);
}

/// Elements of an In, one by one.
Name Generator::elements(ElementType type, const Extents& shape, int depth) {
  const auto sources = places_where([](const Place& place) { return place.access == Access::in; });
  if (sources.empty()) return nothing;
  const Place place = one_of(sources);
  Statement s{.op = Op::gather_elements, .type = place.type, .shape = shape, .from = {place.view}};
  name_elements(s, place, depth);
  s.attributes = {padding_of(place.type)};
  return convert(emit(std::move(s), std::max(memory_most_[static_cast<std::size_t>(place.parameter)],
                                             is_real(place.type) ? 3.0 : 300.0)),
                 type);
}

/// A tile of indices for each axis of a place, mostly within it; the existing operands stay as they are.
void Generator::name_elements(Statement& s, const Place& place, int depth) {
  for (const int extent : place.extents) {
    const Name any = want(ElementType::i32, s.shape, depth);
    const int most = std::max(1, extent) + between(0, 1);
    s.from.push_back(binary(Op::modulo, any, literal(ElementType::i32, most), most));
  }
  s.fixed = (1u << s.from.size()) - 1;
}

/// Row numbers, mostly existing ones, computed in one of several ways.
Name Generator::rows_for(int count, int rows) {
  constexpr ElementType i32 = ElementType::i32;
  const Extents line = {count};
  const auto iota = [&] { return emit({.op = Op::iota, .type = i32, .shape = line, .attributes = {0}}, count); };
  Name any = nothing;
  switch (between(0, 7)) {
    case 0:
      any = iota();
      break;
    case 1:
      return literal(i32, between(-1, rows), line);
    case 2: {
      const Name one = coordinate(rows);
      any = emit({.op = Op::broadcast, .type = i32, .shape = line, .from = {one}}, of(one).most);
      break;
    }
    case 3: {
      const Name steps = binary(Op::mul, iota(), literal(i32, one_of(std::array{-1, 2, 3, 7})), 1e4);
      any = binary(Op::add, steps, coordinate(rows), 1e4);
      break;
    }
    case 4:
    case 5:
      any = load(i32, line);
      if (any != nothing && chance(30)) return any;  // rows that may or may not exist
      break;
    default:
      break;
  }
  if (any == nothing) any = want(i32, line, 2);
  if (of(any).most <= 1000 || chance(5)) return any;
  return binary(Op::modulo, any, literal(i32, std::max(1, rows) + between(0, 2)), 200);
}

/// A tile that is loaded or gathered whole, or else computed; one that broadcasts to the shape is enough if it need not
/// be whole.
Name Generator::oversized_operand(ElementType type, const Extents& shape, bool is_whole) {
  const std::vector<Place> whole = sources_of(shape);
  if (whole.empty() || chance(20)) {
    const Extents narrow = chance(70) ? narrower(shape) : shape;
    const Name made = want(type, narrow, 2);
    if (of(made).shape == shape || (!is_whole && chance(50))) return made;
    return emit({.op = Op::broadcast, .type = type, .shape = shape, .from = {made}}, of(made).most);
  }
  if (chance(65))
    if (const Name gathered = gather(type, shape); gathered != nothing) return gathered;
  const Place place = one_of(whole);
  return convert(load_from(place, shape, nothing), type);
}

// Ops that produce a value
// --------------------------------------------------------------------------------------------------------------------

Name Generator::want(ElementType type, const Extents& shape, int depth) {
  if (const Name old = reuse(type, shape); old != nothing) return old;
  if (fuel_ > 0 && depth > 0) {
    for (int attempt = 0; attempt < 8; ++attempt)
      if (const Name made = make(type, shape, depth - 1); made != nothing) return made;
  }
  return leaf(type, shape);
}

/// An existing value, preferably one without uses.
Name Generator::reuse(ElementType type, const Extents& shape) {
  std::vector<Name> fresh, all;
  for (const auto* names : {&visible_, &vars_}) {
    for (const Name name : *names) {
      if (of(name).type != type || of(name).shape != shape) continue;
      all.push_back(name);
      if (!of(name).used) fresh.push_back(name);
    }
  }
  const std::vector<Name>& from = !fresh.empty() && chance(65) ? fresh : all;
  if (from.empty() || (&from == &all && !chance(fuel_ > 0 ? 25 : 60))) return nothing;
  const Name name = one_of(from);
  return std::find(vars_.begin(), vars_.end(), name) != vars_.end() ? read(name) : name;
}

namespace {
bool is_custom(ElementType type) {
  return std::ranges::any_of(customs(), [&](const Custom& custom) { return custom.function.type == type; });
}
}  // namespace

Name Generator::make(ElementType type, const Extents& shape, int depth) {
  if (chance(35)) return make_structural(type, shape, depth);
  if ((type == ElementType::f32 || type == ElementType::i32) && chance(5)) return make_custom(type, shape, depth);
  if (aside_() % 64 == 0 && is_custom(type)) return make_custom(type, shape, depth);
  if (aside_() % 48 == 0 && !shape.empty()) return make_taken(type, shape, depth);
  if (type == ElementType::pred) return make_logical(shape, depth);
  if (computes(type) && is_real(type) && chance(50)) return make_real(type, shape, depth);
  if (type == ElementType::i32 && chance(35)) return make_integer(type, shape, depth);
  if (computes(type) && !is_real(type) && chance(15)) return make_bits(type, shape, depth);
  if (special_ && (type == ElementType::f16 || type == ElementType::bf16) && chance(20)) {
    const Name other = want(type == ElementType::f16 ? ElementType::bf16 : ElementType::f16, shape, depth);
    return emit({.op = Op::bitcast, .type = type, .shape = shape, .from = {other}}, largest_of(type));
  }
  if (computes(type)) return make_number(type, shape, depth);
  if (chance(40)) return load(type, shape);
  return cast_from_any(type, shape, depth);
}

Name Generator::cast_from_any(ElementType type, const Extents& shape, int depth) {
  constexpr std::array all = {
#define TYPE(name, ...) ElementType::name,
#include "tessera/graph/types.def"
  };
  const ElementType from = chance(25) ? one_of(all) : this->type();
  return from == type ? nothing : convert(want(from, shape, depth), type);
}

Name Generator::make_structural(ElementType type, const Extents& shape, int depth) {
  const int rank = static_cast<int>(shape.size());
  switch (between(0, 10)) {
    case 0: {
      if (rank < 2) return nothing;
      const std::vector<int> axes = shuffled(rank);
      Extents operand(shape.size());
      for (std::size_t i = 0; i < shape.size(); ++i) operand[static_cast<std::size_t>(axes[i])] = shape[i];
      const Name a = want(type, operand, depth);
      return emit(
          {.op = Op::permute, .type = type, .shape = shape, .from = {a}, .attributes = {axes.begin(), axes.end()}},
          of(a).most);
    }
    case 1: {
      Extents operand = shape;
      if (rank >= 2 && chance(50)) {  // two axes flattened
        const auto axis = static_cast<std::size_t>(between(0, rank - 2));
        operand[axis] *= operand[axis + 1];
        operand.erase(operand.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
      } else if (rank >= 1 && rank <= 3 && chance(60)) {  // one axis split
        const auto axis = static_cast<std::size_t>(between(0, rank - 1));
        const int part = one_of(std::array{2, 3, 4, 8});
        if (operand[axis] % part != 0) return nothing;
        operand[axis] /= part;
        operand.insert(operand.begin() + static_cast<std::ptrdiff_t>(axis) + between(0, 1), part);
      } else if (rank <= 3) {
        operand.insert(operand.begin() + between(0, rank), 1);
      }
      if (operand == shape) return nothing;
      return reshape(want(type, operand, depth), shape);
    }
    case 2: {
      const Extents operand = narrower(shape);
      if (operand == shape) return nothing;
      const Name a = want(type, operand, depth);
      return emit({.op = Op::broadcast, .type = type, .shape = shape, .from = {a}}, of(a).most);
    }
    case 3: {
      if (rank == 0) return nothing;
      const int axis = between(0, rank - 1);
      const auto a = static_cast<std::size_t>(axis);
      if (shape[a] < 2) return nothing;
      Statement s{.op = Op::concat, .type = type, .shape = shape, .attributes = {axis}};
      double most = 0;
      Extents part = shape;
      for (int rest = shape[a]; rest > 0; rest -= part[a]) {
        part[a] = s.from.size() == 2 ? rest : chance(50) ? std::max(1, rest / 2) : between(1, rest);
        s.from.push_back(want(type, part, depth));
        most = std::max(most, of(s.from.back()).most);
      }
      return emit(std::move(s), most);
    }
    case 4:
    case 5: {
      const Name condition = want(ElementType::pred, chance(50) ? shape : narrower(shape), depth);
      const Name a = want(type, shape, depth), b = want(type, chance(60) ? shape : narrower(shape), depth);
      return emit({.op = Op::select, .type = type, .shape = shape, .from = {condition, a, b}},
                  std::max(of(a).most, of(b).most));
    }
    case 6:
    case 7:
      return size_of(shape) <= 4096 && chance(30) ? elements(type, shape, std::min(depth, 2)) : gather(type, shape);
    case 8: {  // elements of a longer or shorter tile along one axis, from some start
      if (rank == 0) return nothing;
      const auto axis = static_cast<std::size_t>(between(0, rank - 1));
      const int step = one_of(std::array{1, 1, 1, 2, 3, -1, -2});
      Extents operand = shape;
      operand[axis] = chance(70) ? shape[axis] * std::abs(step) + between(0, 5) : extent();
      if (size_of(operand) > 4096) return nothing;
      const Name a = want(type, operand, depth), zero = literal(ElementType::i32, 0);
      Statement s{.op = Op::extract, .type = type, .shape = shape, .from = {a}, .attributes = {}};
      s.from.resize(shape.size() + 1, zero);
      s.from[axis + 1] = chance(60)
                             ? literal(ElementType::i32, step > 0 ? between(0, 2) : operand[axis] - between(1, 2))
                             : coordinate(operand[axis]);
      // Some begin so far before that only their last elements are in the tile; from a separate random source.
      std::mt19937_64 random(program_.seed * 0xD1342543DE82EF95ull + values_.size());
      if (random() % 3 == 0 && shape[axis] > 1) {
        const auto before = static_cast<int>(1 + random() % static_cast<std::uint64_t>(shape[axis] - 1));
        s.from[axis + 1] = binary(Op::sub, s.from[axis + 1], literal(ElementType::i32, step * before), 1000);
      }
      s.attributes.resize(shape.size(), 1);
      s.attributes[axis] = step;
      return emit(std::move(s), of(a).most);
    }
    default:
      return info(type).stored ? load(type, shape) : nothing;
  }
}

/// Elements of longer or shorter lines, at computed positions.
Name Generator::make_taken(ElementType type, const Extents& shape, int depth) {
  const int axis = between(0, static_cast<int>(shape.size()) - 1);
  Extents tile = shape;
  if (chance(50)) tile[static_cast<std::size_t>(axis)] = extent();
  if (size_of(tile) > 4096) return nothing;
  const Name a = want(type, tile, depth);
  const Name positions = chance(40) ? make_order(chance(60) ? Op::argsort : Op::inverse_permutation, ElementType::i32,
                                                 shape, std::min(depth, 2))
                                    : want(ElementType::i32, shape, depth);
  if (positions == nothing) return nothing;
  return emit({.op = Op::take_along_axis, .type = type, .shape = shape, .from = {a, positions}, .attributes = {axis}},
              of(a).most);
}

/// The first elements of longer lines after sorting, or their indices, or the histogram or the inverse permutation.
Name Generator::make_order(Op op, ElementType type, const Extents& shape, int depth) {
  const bool counts = op == Op::histogram || op == Op::inverse_permutation;
  const int axis = between(0, static_cast<int>(shape.size()) - 1);
  Extents operand = shape;
  int& length = operand[static_cast<std::size_t>(axis)];
  if (counts)
    length = chance(20) ? between(1, 1300) : extent();
  else if (chance(50))
    length += chance(30) ? between(0, 2600) : between(0, 40);
  if (size_of(operand) > 4096) return nothing;
  constexpr std::array types = {ElementType::f32, ElementType::f32, ElementType::f64,
                                ElementType::i32, ElementType::i64, ElementType::u64};
  const Name a = want(counts ? ElementType::i32 : op == Op::argsort ? one_of(types) : type, operand, depth);
  Statement s{.op = op, .type = type, .shape = shape, .from = {a}, .attributes = {axis}};
  if (!counts) s.attributes.push_back(between(0, 1));
  const double most = op == Op::sort ? of(a).most : length;
  return emit(std::move(s), most);
}

Name Generator::make_number(ElementType type, const Extents& shape, int depth) {
  const int rank = static_cast<int>(shape.size());
  const bool real = is_real(type);
  if (rank > 0 && chance(7)) return make_order(Op::sort, type, shape, depth);
  switch (between(0, 10)) {
    case 0: {
      const Name a = want(type, shape, depth);
      return chance(20) ? unary(Op::sign, a, 1) : unary(chance(50) ? Op::neg : Op::abs, a, of(a).most);
    }
    case 1:
    case 2: {
      std::vector<int> ones;
      for (int axis = 0; axis < rank; ++axis)
        if (shape[static_cast<std::size_t>(axis)] == 1) ones.push_back(axis);
      const int axis = ones.empty() ? 0 : one_of(ones);
      Extents operand = shape;
      if (ones.empty()) {
        if (rank > 0) return nothing;
        operand = {extent()};
      } else {
        operand[static_cast<std::size_t>(axis)] = extent();
      }
      if (size_of(operand) > 4096) return nothing;
      constexpr std::array ops = {Op::sum, Op::sum, Op::prod, Op::max, Op::min, Op::max_nan, Op::min_nan};
      const Op op = ops[static_cast<std::size_t>(between(0, real ? 6 : 4))];
      Name a = want(type, operand, depth);
      if (op == Op::prod && real && !special_) {
        if (exact_ || operand[static_cast<std::size_t>(axis)] > 24) return nothing;
        a = limit(a, 16);
      }
      return reshape(reduction(op, a, axis), shape);
    }
    case 3: {
      if (rank == 0) return nothing;
      const int axis = between(0, rank - 1);
      Name a = want(type, shape, depth);
      const int count = shape[static_cast<std::size_t>(axis)];
      Op op = one_of(std::array{Op::cumsum, Op::cumsum, Op::cumprod, Op::cummax, Op::cummin});
      if (real && !special_ && op == Op::cumprod && (exact_ || count > 24)) op = Op::cumsum;
      std::int64_t options = chance(40) ? between(1, 3) : 0;
      // The maximum of nothing is -inf, which other ops may not expect.
      if (real && !special_ && op != Op::cumsum && op != Op::cumprod) options &= 1;
      if (real && !special_ && op == Op::cumprod) a = limit(a, 16);
      const double most = of(a).most;
      return limit(emit({.op = op, .type = type, .shape = shape, .from = {a}, .attributes = {axis, options}},
                        op == Op::cumsum    ? most * count
                        : op == Op::cumprod ? std::pow(std::max(most, 1.0), count)
                        : real              ? most
                                            : std::max(most, largest_of(type))),
                   comfortable);
    }
    case 4: {
      return cast_from_any(type, shape, depth);
    }
    case 10: {
      const Name a = want(type, shape, depth);
      const Name b = want(type, chance(50) ? shape : narrower(shape), depth);
      const Name c = chance(30) ? literal(type, between(-3, 9)) : want(type, narrower(shape), depth);
      const double x = of(a).most, y = of(b).most, z = of(c).most;
      if (real && chance(50)) return limit(ternary(Op::fma, a, b, c, x * y + z), comfortable);
      return ternary(Op::clamp, a, b, c, std::max({x, y, z}));
    }
    default: {
      const bool first_whole = chance(60);
      Name a = want(type, first_whole ? shape : narrower(shape), depth);
      Name b = chance(20) ? literal(type, chance(40)        ? between(-1, 1)
                                          : real && !exact_ ? between(-12, 12) * 0.25
                                                            : between(-5, 9))
                          : want(type, first_whole && chance(40) ? narrower(shape) : shape, depth);
      if (chance(first_whole ? 15 : 60)) std::swap(a, b);
      if (a == b || (of(a).shape != shape && of(b).shape != shape)) b = leaf(type, shape);
      const double x = of(a).most, y = of(b).most;
      constexpr std::array ops = {Op::add,     Op::add,     Op::sub,       Op::mul,    Op::mul,
                                  Op::minimum, Op::maximum, Op::floor_div, Op::modulo, Op::cdiv};
      Op op = one_of(ops);
      if (real && (op == Op::floor_div || op == Op::modulo || op == Op::cdiv))
        op = chance(50) ? Op::minimum_nan : Op::maximum_nan;
      double most = std::max(x, y);
      if (op == Op::add || op == Op::sub) most = x + y;
      if (op == Op::mul) most = x * y;
      if (op == Op::floor_div || op == Op::cdiv) most = x;
      if (op == Op::modulo) most = y;
      return limit(binary(op, a, b, real ? most : std::min(most, largest_of(type))), comfortable);
    }
  }
}

Name Generator::make_real(ElementType type, const Extents& shape, int depth) {
  const bool single = type == ElementType::f32;
  const int kind = between(0, 21);
  const auto above_zero = [&](Name a) {  // the op is smooth there
    if (special_) return a;
    const Name half = literal(type, 0.5);
    return binary(Op::add, unary(Op::abs, a, of(a).most), half, of(a).most + 0.5);
  };
  if (kind <= 2 && shape.size() == 2) {
    constexpr std::array types = {
        f32, ElementType::tf32, ElementType::f16, ElementType::bf16, ElementType::f8e4m3, ElementType::f8e5m2};
    const ElementType factors = single ? one_of(types) : type;
    const int k = large_ ? 16 * (chance(10) ? 8 : between(1, 4)) : chance(20) ? 16 * between(1, 2) : extent();
    const Name a = want(factors, {shape[0], k}, depth), b = want(factors, {k, shape[1]}, depth);
    const Name c = chance(40) ? literal(type, 0, shape) : want(type, shape, depth);
    return limit(emit({.op = Op::mma, .type = type, .shape = shape, .from = {a, b, c}},
                      of(a).most * of(b).most * k + of(c).most),
                 comfortable);
  }
  if (kind <= 3) {
    if (!single) return nothing;
    const Extents keys = chance(70) ? Extents() : narrower(shape);
    const Name key = chance(50) ? literal(ElementType::i64, between(0, 1000)) : want(ElementType::i64, keys, depth);
    return emit(
        {.op = Op::random_uniform, .type = f32, .shape = shape, .from = {key, want(ElementType::i64, shape, depth)}},
        1);
  }
  if (exact_) return nothing;
  const Name a = want(type, shape, depth);
  const double most = of(a).most;
  switch (kind) {
    case 4:
      return unary(Op::exp, limit(a, 5), 150);
    case 5:
      return unary(Op::exp2, limit(a, 6), 64);
    case 6:
      return unary(Op::log, above_zero(a), std::max(0.7, std::log(most + 1)));
    case 7:
      return unary(!single || chance(70) ? Op::tanh : Op::tanh_approx, a, 1);
    case 8:
      return unary(Op::sigmoid2, a, 1);
    case 9:
      return unary(!single || chance(70) ? Op::sqrt : Op::sqrt_approx, special_ ? a : unary(Op::abs, a, most),
                   std::sqrt(most));
    case 10:
      return unary(Op::rsqrt, above_zero(a), 1.5);
    case 11: {
      constexpr std::array ops = {Op::log2, Op::log10, Op::log1p, Op::log2_approx};
      return unary(ops[static_cast<std::size_t>(between(0, single ? 3 : 2))], above_zero(a),
                   std::max(1.0, std::log2(most + 2)));
    }
    case 12:
      return unary(Op::expm1, limit(a, 5), 150);
    case 13: {
      constexpr std::array ops = {Op::sin, Op::cos, Op::tan, Op::sin_approx, Op::cos_approx};
      const Op op = ops[static_cast<std::size_t>(between(0, single ? 4 : 2))];
      return op == Op::tan ? unary(op, limit(a, 1), 1.6) : unary(op, limit(a, 50), 1);
    }
    case 14:
      return unary(chance(50) ? Op::asin : Op::acos, limit(a, 0.9), 3.2);
    case 15:
      return chance(50) ? unary(Op::atan, a, 1.6) : unary(chance(50) ? Op::sinh : Op::cosh, limit(a, 5), 75);
    case 16: {
      constexpr std::array ops = {Op::erf, Op::erfc, Op::cbrt};
      const Op op = one_of(ops);
      return unary(op, a, op == Op::cbrt ? std::cbrt(most) : 2);
    }
    case 17: {
      constexpr std::array ops = {Op::floor, Op::ceil, Op::trunc, Op::round};
      return unary(one_of(ops), a, most + 1);
    }
    case 18: {
      const Name by = want(type, chance(50) ? shape : narrower(shape), depth);
      if (chance(30)) return binary(Op::copysign, a, by, most);
      if (chance(40)) return binary(Op::atan2, a, by, 3.2);
      return limit(binary(Op::pow, above_zero(limit(a, 4)), limit(by, 3), 100), comfortable);
    }
    case 19: {
      if (!single) return nothing;
      const Name bits = want(ElementType::i32, shape, depth);
      if (special_ && chance(50))
        return emit({.op = Op::bitcast, .type = f32, .shape = shape, .from = {bits}}, 0x1p127);
      const Name fraction = binary(Op::bitwise_and, bits, literal(ElementType::i32, 0x7fffff), 0x1p23);
      const Name number = binary(Op::bitwise_or, fraction, literal(ElementType::i32, 0x3f800000), 0x1p30);
      return emit({.op = Op::bitcast, .type = f32, .shape = shape, .from = {number}}, 2);
    }
    default: {
      const Name by = want(type, chance(50) ? shape : narrower(shape), depth);
      return limit(binary(Op::div, a, above_zero(by), 2 * most), comfortable);
    }
  }
}

Name Generator::make_custom(ElementType type, const Extents& shape, int depth) {
  std::vector<int> kinds;
  for (std::size_t i = 0; i < customs().size(); ++i)
    if (customs()[i].function.type == type) kinds.push_back(static_cast<int>(i));
  const bool many = type == ElementType::f32 || type == ElementType::i32;  // of which the first three are drawn mostly
  const int kind = many && aside_() % 4 != 0 ? kinds[static_cast<std::size_t>(between(0, 2))]
                                             : kinds[aside_() % kinds.size()];
  const CustomFunction& function = customs()[static_cast<std::size_t>(kind)].function;
  Statement s{.op = Op::custom, .type = type, .shape = shape, .attributes = {kind}};
  double most = 1;
  for (int i = 0; i < function.operands; ++i) {
    s.from.push_back(want(type, i == 0 || chance(60) ? shape : narrower(shape), depth));
    most = std::max(most, of(s.from.back()).most);
  }
  return emit(std::move(s), is_real(type) ? most : std::min(4 * most + 2, largest_of(type)));
}

Name Generator::make_bits(ElementType type, const Extents& shape, int depth) {
  const Name a = want(type, shape, depth);
  const double most = std::min(2 * of(a).most + 2, largest_of(type));  // a power of two is strictly above it
  const auto other = [&] {
    return chance(30) ? literal(type, between(-9, 99)) : want(type, chance(50) ? shape : narrower(shape), depth);
  };
  switch (between(0, 5)) {
    case 0: {
      constexpr std::array ops = {Op::bitwise_and, Op::bitwise_or, Op::bitwise_xor};
      const Name b = other();
      return binary(one_of(ops), a, b, std::min(std::max(most, 2 * of(b).most + 2), largest_of(type)));
    }
    case 1: {
      const int count = between(-1, 8);
      return binary(Op::shift_left, a, literal(type, count), std::min(most * std::exp2(count), largest_of(type)));
    }
    case 2:
      return chance(50) ? binary(Op::shift_right, a, other(), most)
                        : binary(Op::shift_left, a, other(), largest_of(type));
    case 3:
      return unary(Op::bitwise_not, a, most);
    case 4:
      return unary(chance(50) ? Op::popcount : Op::clz, a, 64);
    default: {
      if (type != ElementType::i32) return nothing;
      const Name number = want(ElementType::f32, shape, depth);
      return emit({.op = Op::bitcast, .type = type, .shape = shape, .from = {number}}, largest_of(type));
    }
  }
}

Name Generator::make_integer(ElementType type, const Extents& shape, int depth) {
  const int rank = static_cast<int>(shape.size());
  if (rank > 0 && chance(25))
    return make_order(chance(60)           ? Op::argsort
                      : aside_() % 3 == 0 ? Op::inverse_permutation
                                          : Op::histogram,
                      type, shape, depth);
  switch (between(0, 4)) {
    case 0: {
      if (rank == 0) return nothing;
      const int axis = between(0, rank - 1);
      return emit({.op = Op::iota, .type = type, .shape = shape, .attributes = {axis}},
                  shape[static_cast<std::size_t>(axis)]);
    }
    case 1: {
      for (int axis = 0; axis < rank; ++axis) {
        if (shape[static_cast<std::size_t>(axis)] != 1) continue;
        Extents operand = shape;
        operand[static_cast<std::size_t>(axis)] = extent();
        constexpr std::array types = {ElementType::f32, ElementType::f32, ElementType::f64, ElementType::i32,
                                      ElementType::i64, ElementType::u32, ElementType::u64};
        return reduction(Op::argmax, want(one_of(types), operand, depth), axis);
      }
      return nothing;
    }
    case 3: {
      if (rank != 2) return nothing;
      const ElementType factors = chance(60) ? ElementType::i8 : ElementType::u8;
      const int k = extent();
      const Name a = want(factors, {shape[0], k}, depth), b = want(factors, {k, shape[1]}, depth);
      const Name c = chance(40) ? literal(type, 0, shape) : want(type, shape, depth);
      return emit({.op = Op::mma, .type = type, .shape = shape, .from = {a, b, c}},
                  std::min(of(a).most * of(b).most * k + of(c).most, largest_of(type)));
    }
    case 2:
      return emit({.op = Op::random_bits,
                   .type = type,
                   .shape = shape,
                   .from = {want(ElementType::i64, narrower(shape), depth), want(ElementType::i64, shape, depth)}},
                  0x1p31);
    default: {
      if (rank != 0) return nothing;
      const Place place = one_of(places_);
      const int axis = between(0, static_cast<int>(place.at.size()) - 1);
      return emit({.op = Op::extent, .type = type, .from = {place.view}, .attributes = {axis}}, 200);
    }
  }
}

Name Generator::make_logical(const Extents& shape, int depth) {
  constexpr ElementType pred = ElementType::pred;
  const int rank = static_cast<int>(shape.size());
  switch (between(0, 7)) {
    case 6: {
      constexpr std::array ops = {Op::isnan, Op::isinf, Op::isfinite};
      return unary(one_of(ops), want(chance(70) ? ElementType::f32 : ElementType::f64, shape, depth), 1);
    }
    case 0:
      return unary(Op::logical_not, want(pred, shape, depth), 1);
    case 7:
      for (int axis = 0; axis < rank; ++axis) {
        if (shape[static_cast<std::size_t>(axis)] != 1) continue;
        Extents operand = shape;
        operand[static_cast<std::size_t>(axis)] = extent();
        return reduction(chance(50) ? Op::any : Op::all, want(pred, operand, depth), axis);
      }
      return nothing;
    case 1: {
      const Name a = want(pred, shape, depth), b = want(pred, chance(50) ? shape : narrower(shape), depth);
      constexpr std::array ops = {Op::logical_and, Op::logical_or, Op::logical_xor};
      return binary(one_of(ops), a, b, 1);
    }
    case 2:
      return cast_from_any(pred, shape, depth);
    default: {
      constexpr std::array types = {ElementType::f32, ElementType::i32, ElementType::i32, ElementType::i64,
                                    ElementType::f64, ElementType::u32, ElementType::u64};
      const ElementType type = one_of(types);
      constexpr std::array ops = {Op::less, Op::less_equal, Op::greater, Op::greater_equal, Op::equal, Op::not_equal};
      const Name a = want(type, shape, depth);
      const Name b = chance(40) ? literal(type, between(!is_real(type) && lowest(type) == 0 ? 0 : -2, 3))
                                : want(type, chance(50) ? shape : narrower(shape), depth);
      return binary(one_of(ops), a, b, 1);
    }
  }
}

/// A value from (almost) no operands.
Name Generator::leaf(ElementType type, const Extents& shape) {
  if (info(type).stored && chance(85))
    if (const Name loaded = load(type, shape); loaded != nothing) return loaded;
  if (chance(60)) {
    const ElementType other = one_of(places_).type;
    if (const Name loaded = load(other, shape); loaded != nothing) return convert(loaded, type);
  }
  if (chance(60)) {
    std::vector<Name> convertible;
    for (const Name name : visible_)
      if (of(name).shape == shape && of(name).type != type) convertible.push_back(name);
    if (!convertible.empty()) return convert(one_of(convertible), type);
  }
  if (shape.empty()) {
    std::vector<Name> fitting;
    for (const Name name : visible_)
      if (of(name).type == type && of(name).shape.empty()) fitting.push_back(name);
    if (!fitting.empty() && chance(60)) return one_of(fitting);
  } else if (chance(50)) {
    const int axis = between(0, static_cast<int>(shape.size()) - 1);
    const int count = shape[static_cast<std::size_t>(axis)];
    const Name number = emit({.op = Op::iota, .type = ElementType::i32, .shape = shape, .attributes = {axis}}, count);
    if (type == ElementType::pred) {
      const Op op = one_of(std::array{Op::less, Op::not_equal});
      return binary(op, number, literal(ElementType::i32, between(0, count)), 1);
    }
    return convert(number, type);
  }
  const bool positive = !is_real(type) && lowest(type) == 0;
  return literal(type,
                 type == ElementType::pred  ? between(0, 1)
                 : positive                 ? between(0, 9)
                 : is_real(type) && !exact_ ? between(-8, 8) * 0.25
                                            : between(-5, 9),
                 shape);
}

}  // namespace tessera::internal::fuzz
