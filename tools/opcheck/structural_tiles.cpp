// Structural ops that make tiles from tiles, or from nothing.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "jit/launch/matmul_tiles.hpp"
#include "opcheck/axes.hpp"
#include "opcheck/setting.hpp"
#include "opcheck/sketch.hpp"
#include "opcheck/structural.hpp"
#include "tessera/tessera.hpp"

namespace tessera::internal::opcheck::structural {
namespace {

/// The shape of a tensor for the tile: there are none of rank 0.
std::vector<std::int64_t> extents_of(const Shape& tile) {
  if (tile.rank() == 0) return {1};
  return {tile.begin(), tile.end()};
}

/// An op of one tile, with a result of type `result`.
Case of_tile(Op op, ElementType type, const Shape& tile, const Shape& result, std::vector<std::int64_t> attr = {}) {
  std::string name = to_string(tile);
  for (std::size_t i = 0; i < attr.size(); ++i) name += fmt::format("{}{}", i ? "," : ", axis ", attr[i]);
  if (result != tile) name += " to " + to_string(result);
  Sketch sketch({input(type, extents_of(tile)), output(type, extents_of(result))});
  Id x = sketch.load(0, type, sketch.origin(std::max(1, tile.rank())), tile.rank() ? tile : Shape{1});
  if (tile.rank() == 0) x = sketch.apply(Op::reshape, {x});
  Id y = sketch.apply(op, {x}, std::move(attr), result);
  if (result.rank() == 0) y = sketch.apply(Op::broadcast, {y}, {}, Shape{1});
  sketch.store(1, sketch.origin(std::max(1, result.rank())), y);
  return sketch.finish(op, type, name);
}

Case selection(ElementType type, const Setting& setting) {
  Sketch sketch({input(ElementType::pred, setting.extents, setting.layout),
                 input(type, setting.extents, setting.layout), input(type, setting.extents, setting.layout),
                 output(type, setting.extents, setting.layout)});
  const std::vector<Id> at = sketch.tiles(1, setting.tile);
  const Id condition = sketch.load(0, ElementType::pred, at, setting.tile);
  const Id x = sketch.load(1, type, at, setting.tile), y = sketch.load(2, type, at, setting.tile);
  sketch.store(3, at, sketch.apply(Op::select, type, {condition, x, y}));
  return sketch.finish(Op::select, type, setting.name());
}

Case selection_by_row(ElementType type) {
  Sketch sketch({input(ElementType::pred, {4, 1}), input(type, {3, 1, 9}), output(type, {3, 4, 9})});
  const Id condition = sketch.load(0, ElementType::pred, sketch.origin(2), {4, 1});
  const Id x = sketch.load(1, type, sketch.origin(3), {3, 1, 9}), y = sketch.constant(type, 1);
  sketch.store(2, sketch.origin(3), sketch.apply(Op::select, type, {condition, x, y}));
  return sketch.finish(Op::select, type, "[4,1] of [3,1,9] and a number");
}

template <class T, int operands, class F>
Case custom_of(const Setting& setting, const char* expression, F) {
  const ElementType type = element_type<T>;
  std::vector<Field> fields(operands, input(type, setting.extents, setting.layout));
  fields.push_back(output(type, setting.extents, setting.layout));
  Sketch sketch(fields);
  const std::vector<Id> at = sketch.tiles(0, setting.tile);
  std::vector<Id> in;
  for (int i = 0; i < operands; ++i) in.push_back(sketch.load(i, type, at, setting.tile));
  const std::int64_t function = sketch.function({"f", expression, type, operands, &detail::run_custom<F, T, operands>});
  sketch.store(operands, at, sketch.apply(Op::custom, in, {function}));
  return sketch.finish(Op::custom, type, fmt::format("{}, {}", expression, setting.name()));
}

/// A cast or a bitcast.
Case conversion(Op op, ElementType from, ElementType to, const Setting& setting, Values values, std::string name) {
  Sketch sketch({input(from, setting.extents, setting.layout, values), output(to, setting.extents, setting.layout)});
  const std::vector<Id> at = sketch.tiles(0, setting.tile);
  sketch.store(1, at, sketch.apply(op, to, {sketch.load(0, from, at, setting.tile)}));
  return sketch.finish(op, from, fmt::format("to {}, {}", tessera::internal::name(to), name));
}

/// a [m,k] times b [k,n] plus c [m,n], in tiles.
struct Product {
  MatmulTiles tile;
  std::int64_t m, n, k;
  Layout a = Layout::dense, b = Layout::dense;

  Case of(ElementType type) const {
    const bool whole = info(type).kind == ElementKind::integer;
    const Values small{.low = whole ? -128.0 : -2, .high = whole ? 127.0 : 2};
    const ElementType sums = sum_type(type);
    Sketch sketch({input(type, {m, k}, a, small), input(type, {k, n}, b, small),
                   input(sums, {m, n}, Layout::dense, small), output(sums, {m, n})});
    const std::vector<Id> at = sketch.tiles(3, {tile.m, tile.n});
    const Id c = sketch.load(2, sums, at, {tile.m, tile.n});
    const auto step = [&](Id i, Id sum) {
      return sketch.apply(Op::mma, sums,
                          {sketch.load(0, type, {at[0], i}, {tile.m, tile.k}),
                           sketch.load(1, type, {i, at[1]}, {tile.k, tile.n}), sum});
    };
    const std::int64_t steps = (k + tile.k - 1) / tile.k;
    sketch.store(3, at, steps == 1 ? step(sketch.index(0), c) : sketch.loop(sketch.index(steps), c, step));
    Case made = sketch.finish(
        Op::mma, type,
        fmt::format("{}x{}x{} in {}x{}x{}, {} and {}", m, n, k, tile.m, tile.n, tile.k, text(a), text(b)));
    made.operations = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    made.why_no_roles = why_no_roles(type, steps);
    return made;
  }

  std::string why_no_roles(ElementType type, std::int64_t steps) const {
    if (!has_wgmma(type)) return fmt::format("wgmma multiplies f16, bf16, tf32, fp8, i8 or u8, not {}", name(type));
    if (steps == 1) return "the matmul is not in a loop";
    constexpr int widths[] = {64, 96, 128, 192, 256}, bytes_of_panel = 128;
    if (tile.m % 64 || tile.k * info(type).bytes % 128 || !std::ranges::count(widths, tile.n))
      return fmt::format("no wgmma schedule for tiles of [{0},{2}] x [{2},{1}]", tile.m, tile.n, tile.k);
    for (const bool left : {true, false}) {
      const Layout along_k = left ? Layout::dense : Layout::transposed, layout = left ? a : b;
      const std::string_view side = left ? "left" : "right";
      // With its operands swapped, wgmma takes the right one from registers.
      const bool swaps = !left && !is_fp8(type) && a == Layout::dense && tile.n % 64 == 0 && tile.n != 192 &&
                         tile.n * info(type).bytes % bytes_of_panel == 0;
      if (info(type).bytes != 2 && (layout == Layout::transposed) == left && !swaps)
        return fmt::format("the {} operand is not contiguous along k, as wgmma requires for {}", side, name(type));
      if (info(type).bytes == 1 && (swaps && layout != along_k ? n % 16 != 0 : layout != along_k || k % 16 != 0))
        return fmt::format("the {} operand cannot be loaded by TMA, as rows of 8-bit elements must be for wgmma", side);
    }
    return {};
  }
};

/// As in the model.
Product large_product(ElementType type, Purpose purpose) {
  const bool gpu = purpose == Purpose::perf_gpu;
  const int extent = gpu ? 4096 : 512;
  const MatmulShape shape{extent, extent, extent};
  return {
      gpu ? rule_tiles(rule_rows(extent, type), shape, type) : choose(MatmulFamily::plain, shape, type, MatmulTarget()),
      extent, extent, extent};
}

}  // namespace

std::vector<Case> select(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  for (const Setting& setting : settings(purpose)) cases.push_back(selection(type, setting));
  if (purpose == Purpose::test) cases.push_back(selection_by_row(type));
  return cases;
}

namespace {
/// The greater of two numbers, for any other type that tensors hold.
Case custom_of_type(const Setting& setting, ElementType type) {
  std::optional<Case> result;
  const auto with = [&]<class T>(T) {
    if (type == element_type<T>)
      result = custom_of<T, 2>(setting, "a < b ? b : a", [](T a, T b) {
        if constexpr (std::is_arithmetic_v<T>)
          return a < b ? b : a;
        else
          return float(a) < float(b) ? b : a;
      });
  };
#define TYPE(name, bytes, kind, held, computes, stored, ...) \
  if constexpr (stored) with(std::conditional_t<stored, tessera::internal::name, float>());
#include "tessera/graph/types.def"
  return *result;
}
}  // namespace

std::vector<Case> custom(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  for (const Setting& setting : settings(purpose)) {
    if (type == ElementType::f32) {
      cases.push_back(custom_of<f32, 1>(setting, "a > 0.5f ? 0.5f : a", [](float a) { return a > 0.5f ? 0.5f : a; }));
      cases.push_back(
          custom_of<f32, 3>(setting, "a < b ? c : a", [](float a, float b, float c) { return a < b ? c : a; }));
      cases.push_back(custom_of<f32, 4>(setting, "a < b ? c : d",
                                        [](float a, float b, float c, float d) { return a < b ? c : d; }));
    } else if (type == ElementType::i32) {
      cases.push_back(custom_of<tessera::internal::i32, 2>(setting, "a ^ b", [](int a, int b) { return a ^ b; }));
    } else if (info(type).stored) {
      cases.push_back(custom_of_type(setting, type));
    }
  }
  return cases;
}

std::vector<Case> cast(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  for (const ElementType to : all_types()) {
    if (purpose != Purpose::test) {
      for (const Setting& setting : settings(purpose))
        cases.push_back(conversion(Op::cast, type, to, setting, {}, setting.name()));
      continue;
    }
    const Setting odd{{5, 33}, {13, 40}, Layout::padded}, even{{8, 64}, {8, 64}};
    cases.push_back(conversion(Op::cast, type, to, odd, {.low = -400, .high = 400}, odd.name()));
    cases.push_back(conversion(Op::cast, type, to, even, {.low = -1e5, .high = 1e5, .edges = true}, "extreme numbers"));
  }
  return cases;
}

std::vector<Case> bitcast(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  for (const ElementType to : all_types()) {
    if (!bitcasts(type, to)) continue;
    const auto add = [&](const Setting& setting, Values values, std::string name) {
      cases.push_back(conversion(Op::bitcast, type, to, setting, values, std::move(name)));
    };
    if (purpose != Purpose::test) {
      for (const Setting& setting : settings(purpose)) add(setting, {}, setting.name());
      continue;
    }
    const Setting odd{{5, 33}, {13, 40}, Layout::padded};
    add(odd, {.low = -400, .high = 400}, odd.name());
    add({{8, 64}, {8, 64}}, {.low = -1e5, .high = 1e5, .edges = true}, "extreme numbers");
  }
  return cases;
}

std::vector<Case> constant(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (purpose != Purpose::test) return cases;
  const auto add = [&](const Shape& tile, double value) {
    Sketch sketch({output(type, extents_of(tile))});
    sketch.store(0, sketch.origin(tile.rank()), sketch.constant(type, value, tile));
    cases.push_back(sketch.finish(Op::constant, type, fmt::format("{} of {}", to_string(tile), value)));
  };
  for (const Shape& tile : {Shape{1}, Shape{5, 33}, Shape{8, 64}}) add(tile, 1);
  if (info(type).kind == ElementKind::real)
    for (const double value : {-0.0, 0x1p-24, -inf, std::numeric_limits<double>::quiet_NaN()}) add({5}, value);
  if (type == ElementType::i32 || type == ElementType::i64)
    add({5}, -std::ldexp(1, 8 * info(type).bytes - 1));  // the lowest
  return cases;
}

std::vector<Case> iota(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (type != ElementType::i32 || purpose != Purpose::test) return cases;
  for (const Shape& tile : {Shape{1}, Shape{37}, Shape{8, 64}, Shape{3, 1, 5}})
    for (int axis = 0; axis < tile.rank(); ++axis) {
      Sketch sketch({output(type, extents_of(tile))});
      sketch.store(0, sketch.origin(tile.rank()), sketch.apply(Op::iota, type, {}, {axis}, tile));
      cases.push_back(sketch.finish(Op::iota, type, fmt::format("{}, axis {}", to_string(tile), axis)));
    }
  return cases;
}

std::vector<Case> block(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (type != ElementType::i32 || purpose != Purpose::test) return cases;
  using Grid = std::vector<std::int64_t>;
  for (const Grid& extents : {Grid{1}, Grid{7}, Grid{3, 1, 4}, Grid{2, 1, 2, 1, 3}})
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      Sketch sketch({output(type, extents)});
      const std::vector<Id> at = sketch.grid(extents);
      Shape tile = Shape::of_rank(static_cast<int>(extents.size()));
      for (int i = 0; i < tile.rank(); ++i) tile[i] = 1;
      sketch.store(0, at, sketch.apply(Op::broadcast, {at[axis]}, {}, tile));
      cases.push_back(sketch.finish(Op::block, type, fmt::format("grid {}, axis {}", text(extents), axis)));
    }
  return cases;
}

std::vector<Case> reshape(ElementType type, Purpose purpose) {
  if (purpose != Purpose::test) return {};
  return {of_tile(Op::reshape, type, {6, 10}, {4, 15}), of_tile(Op::reshape, type, {8, 64}, {512}),
          of_tile(Op::reshape, type, {7}, {1, 7, 1}),   of_tile(Op::reshape, type, {2, 3, 4}, {4, 3, 2}),
          of_tile(Op::reshape, type, {1}, {}),          of_tile(Op::reshape, type, {}, {1, 1})};
}

std::vector<Case> permute(ElementType type, Purpose purpose) {
  if (purpose == Purpose::test)
    return {of_tile(Op::permute, type, {16, 64}, {64, 16}, {1, 0}),
            of_tile(Op::permute, type, {5, 33}, {33, 5}, {1, 0}),
            of_tile(Op::permute, type, {1, 7}, {7, 1}, {1, 0}),
            of_tile(Op::permute, type, {2, 3, 5}, {5, 2, 3}, {2, 0, 1}),
            of_tile(Op::permute, type, {2, 3, 5}, {2, 3, 5}, {0, 1, 2}),
            of_tile(Op::permute, type, {1, 2, 3, 2, 1, 3}, {3, 1, 2, 3, 2, 1}, {5, 4, 3, 2, 1, 0})};
  const Setting setting{{64, 64}, settings(purpose)[0].extents};
  Sketch sketch({input(type, setting.extents), output(type, setting.extents)});
  const std::vector<Id> at = sketch.tiles(0, setting.tile);
  sketch.store(1, {at[1], at[0]}, sketch.apply(Op::permute, {sketch.load(0, type, at, setting.tile)}, {1, 0}));
  std::vector<Case> cases;
  cases.push_back(sketch.finish(Op::permute, type, setting.name()));
  return cases;
}

std::vector<Case> broadcast(ElementType type, Purpose purpose) {
  if (purpose != Purpose::test) return {};
  return {of_tile(Op::broadcast, type, {1, 5}, {7, 5}), of_tile(Op::broadcast, type, {8, 1}, {8, 64}),
          of_tile(Op::broadcast, type, {33}, {5, 33}),  of_tile(Op::broadcast, type, {}, {3, 4}),
          of_tile(Op::broadcast, type, {1, 1}, {2, 1}), of_tile(Op::broadcast, type, {2, 1, 3}, {4, 2, 5, 3})};
}

std::vector<Case> concat(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (purpose != Purpose::test) return cases;
  const auto add = [&](const std::vector<Shape>& tiles, int axis) {
    std::vector<Field> fields;
    Shape result = tiles[0];
    std::string name = fmt::format("axis {} of", axis);
    result[axis] = 0;
    for (const Shape& tile : tiles) {
      fields.push_back(input(type, extents_of(tile)));
      result[axis] += tile[axis];
      name += " " + to_string(tile);
    }
    fields.push_back(output(type, extents_of(result)));
    Sketch sketch(fields);
    std::vector<Id> parts;
    for (std::size_t i = 0; i < tiles.size(); ++i)
      parts.push_back(sketch.load(static_cast<int>(i), type, sketch.origin(result.rank()), tiles[i]));
    sketch.store(static_cast<int>(tiles.size()), sketch.origin(result.rank()), sketch.apply(Op::concat, parts, {axis}));
    cases.push_back(sketch.finish(Op::concat, type, name));
  };
  add({{8, 32}, {8, 32}}, 1);
  add({{5, 33}, {2, 33}, {1, 33}}, 0);
  add({{3, 1, 2}, {3, 4, 2}}, 1);
  add({{7}}, 0);
  return cases;
}

std::vector<Case> extract(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (purpose != Purpose::test) return cases;
  const auto add = [&](const Shape& tile, const std::vector<std::int64_t>& first, std::vector<std::int64_t> steps,
                       const Shape& part, bool read) {
    const std::size_t rank = first.size();
    std::vector<Field> fields = {input(type, extents_of(tile)), output(type, extents_of(part))};
    for (const std::int64_t at : first)
      if (read) fields.push_back(given(i32, static_cast<double>(at)));
    Sketch sketch(fields);
    std::vector<Id> in = {sketch.load(0, type, sketch.origin(tile.rank()), tile)};
    for (std::size_t axis = 0; axis < rank; ++axis)
      in.push_back(read ? sketch.scalar(static_cast<int>(axis) + 2) : sketch.index(first[axis]));
    const std::string name = fmt::format("{} of {} from {} by {}{}", to_string(part), to_string(tile),
                                         fmt::join(first, ","), fmt::join(steps, ","), read ? ", given" : "");
    sketch.store(1, sketch.origin(tile.rank()), sketch.apply(Op::extract, in, std::move(steps), part));
    cases.push_back(sketch.finish(Op::extract, type, name));
  };
  for (const bool read : {false, true}) {
    add({8, 64}, {0, 32}, {1, 1}, {8, 32}, read);
    add({8, 64}, {7, 1}, {-1, 2}, {8, 16}, read);
    add({5, 33}, {3, -4}, {1, 1}, {4, 33}, read);  // across both ends
    add({7}, {9}, {-3}, {6}, read);
    add({3, 1, 2}, {-2147483647 - 1, 0, 2147483647}, {1, 1, -1}, {3, 1, 2}, read);  // entirely outside
  }
  return cases;
}

std::vector<Case> argmax(ElementType type, Purpose purpose) {
  if (!info(type).computes) return {};
  return along_axes(Op::argmax, type, ElementType::i32, Axis::one, purpose);
}

namespace {

/// Lines of every length that is sorted in a different way: within a lane, within a warp, and longer ones; also by
/// lines across the last axis.
std::vector<Case> orders(Op op, ElementType type) {
  const ElementType result = op == Op::sort ? type : ElementType::i32;
  std::vector<Case> cases;
  const auto add =
      [&](const Shape& tile, int axis, int first, bool descending, Values values, std::string remark = "") {
    Shape part = tile;
    part[axis] = first;
    Sketch sketch({input(type, extents_of(tile), Layout::dense, values), output(result, extents_of(part))});
    const Id x = sketch.load(0, type, sketch.origin(tile.rank()), tile);
    sketch.store(1, sketch.origin(tile.rank()), sketch.apply(op, result, {x}, {axis, descending}, part));
    cases.push_back(
        sketch.finish(op, type,
                      fmt::format("axis {} of {}{}{}{}", axis, to_string(tile), descending ? ", descending" : "",
                                  first < tile[axis] ? fmt::format(", the first {}", first) : "", remark)));
  };
  const Values equal{.low = -3, .high = 3, .whole = true}, edges{.low = -2, .high = 2, .whole = true, .edges = true};
  for (const bool descending : {false, true}) {
    for (const Shape& tile :
         {Shape{1}, Shape{37}, Shape{8, 64}, Shape{5, 33}, Shape{40, 3}, Shape{2, 1, 5}, Shape{3, 1024}})
      for (int axis = 0; axis < tile.rank(); ++axis) add(tile, axis, tile[axis], descending, {});
    for (const int length : {29, 200, 1500}) {
      add({2, length}, 1, length, descending, equal, ", many equal");
      add({length, 2}, 0, length, descending, edges, ", extreme numbers");
      for (const int first : {1, 6, 28}) add({2, length}, 1, first, descending, equal);
    }
    add({1, 2100}, 1, 2100, descending, edges, ", extreme numbers");
    add({1, 2100}, 1, 1500, descending, {});
  }
  return cases;
}

/// Numbers of a few bins, in the type's representation.
Case counts(Op op, const Shape& tile, int axis, int bins, Values values) {
  Shape result = tile;
  result[axis] = bins;
  Sketch sketch({input(i32, extents_of(tile), Layout::dense, values), output(i32, extents_of(result))});
  const Id x = sketch.load(0, i32, sketch.origin(tile.rank()), tile);
  sketch.store(1, sketch.origin(tile.rank()), sketch.apply(op, i32, {x}, {axis}, result));
  return sketch.finish(op, i32, fmt::format("{} bins along axis {} of {}", bins, axis, to_string(tile)));
}

/// The shape to measure: rows of 1024, one CTA for each four.
Case measured_order(Op op, ElementType type, const Setting& setting) {
  const ElementType result = op == Op::sort ? type : ElementType::i32;
  Sketch sketch({input(type, setting.extents), output(result, setting.extents)});
  const std::vector<Id> at = sketch.tiles(0, setting.tile);
  const Id x = sketch.load(0, type, at, setting.tile);
  sketch.store(1, at, sketch.apply(op, result, {x}, {1, 0}, setting.tile));
  return sketch.finish(op, type, setting.name());
}

std::vector<Case> orders_of(Op op, ElementType type, Purpose purpose) {
  if (!info(type).computes) return {};
  if (purpose == Purpose::test) return orders(op, type);
  std::vector<Case> cases;
  for (const Setting& setting : settings(purpose)) cases.push_back(measured_order(op, type, setting));
  return cases;
}

}  // namespace

std::vector<Case> sort(ElementType type, Purpose purpose) { return orders_of(Op::sort, type, purpose); }

std::vector<Case> argsort(ElementType type, Purpose purpose) { return orders_of(Op::argsort, type, purpose); }

namespace {

std::vector<Case> counts(Op op, ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (type != ElementType::i32 || purpose != Purpose::test) return cases;
  for (const Shape& tile : {Shape{1}, Shape{700}, Shape{8, 64}, Shape{5, 33}, Shape{2, 3, 50}})
    for (int axis = 0; axis < tile.rank(); ++axis)
      for (const int bins : {1, 10, 300}) cases.push_back(counts(op, tile, axis, bins, {.low = -2, .high = 12}));
  cases.push_back(counts(op, {5000}, 0, 4, {.low = 0, .high = 3}));
  cases.push_back(counts(op, {200}, 0, 20000, {.low = -100, .high = 20100, .edges = true}));
  return cases;
}

}  // namespace

std::vector<Case> histogram(ElementType type, Purpose purpose) { return counts(Op::histogram, type, purpose); }

std::vector<Case> inverse_permutation(ElementType type, Purpose purpose) {
  return counts(Op::inverse_permutation, type, purpose);
}

std::vector<Case> take_along_axis(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (purpose != Purpose::test) return cases;
  const auto add = [&](const Shape& tile, int axis, int extent, Values positions) {
    Shape result = tile;
    result[axis] = extent;
    positions.whole = true;
    Sketch sketch({input(type, extents_of(tile)), input(i32, extents_of(result), Layout::dense, positions),
                   output(type, extents_of(result))});
    const std::vector<Id> at = sketch.origin(tile.rank());
    const Id x = sketch.load(0, type, at, tile), p = sketch.load(1, i32, at, result);
    sketch.store(2, at, sketch.apply(Op::take_along_axis, type, {x, p}, {axis}));
    cases.push_back(sketch.finish(
        Op::take_along_axis, type,
        fmt::format("{} along axis {} of {}{}", extent, axis, to_string(tile), positions.edges ? ", extreme" : "")));
  };
  for (const Shape& tile : {Shape{1}, Shape{8, 64}, Shape{5, 33}, Shape{40, 3}, Shape{2, 3, 50}})
    for (int axis = 0; axis < tile.rank(); ++axis)
      for (const int extent : {1, tile[axis], 70})
        add(tile, axis, extent, {.low = -2, .high = static_cast<double>(tile[axis]) + 1});
  add({3, 1000}, 1, 1000, {.low = 0, .high = 999});
  add({200}, 0, 300, {.low = -100, .high = 300, .edges = true});
  return cases;
}

std::vector<Case> mma(ElementType type, Purpose purpose) {
  if (!info(type).multiplies) return {};
  std::vector<Product> products;
  if (purpose == Purpose::test)
    products = {{{16, 16, 16}, 16, 16, 16},
                {{32, 16, 32}, 64, 32, 64},
                {{5, 7, 9}, 5, 7, 9, Layout::padded, Layout::padded},
                {{1, 1, 1}, 1, 1, 1},
                {{16, 32, 16}, 20, 40, 70, Layout::transposed, Layout::dense},
                {{64, 24, 16}, 50, 24, 40, Layout::dense, Layout::transposed},
                {{1, 48, 32}, 3, 48, 32, Layout::strided, Layout::strided},
                {{64, 64, 64}, 72, 136, 136},
                {{64, 96, 64}, 72, 104, 72, Layout::dense, Layout::transposed}};
  else
    products = {large_product(type, purpose)};
  std::vector<Case> cases;
  for (const Product& product : products) cases.push_back(product.of(type));
  return cases;
}

}  // namespace tessera::internal::opcheck::structural
