// Atomics. If old values are used, each CTA has its own elements; elements that CTAs share are changed by one
// commutative op.
#include <fmt/format.h>

#include "opcheck/setting.hpp"
#include "opcheck/sketch.hpp"
#include "opcheck/structural.hpp"

namespace tessera::internal::opcheck::structural {
namespace {

/// An order and a scope, as node attributes.
struct Ordered {
  MemoryOrder order = MemoryOrder::relaxed;
  MemoryScope scope = MemoryScope::device;
  std::vector<std::int64_t> attributes() const { return {static_cast<int>(order), static_cast<int>(scope)}; }
  std::string name() const {
    return *this == Ordered() ? "" : fmt::format(", {}, {}", tessera::internal::name(order), tessera::internal::name(scope));
  }
  bool operator==(const Ordered&) const = default;
};

bool compares(Op op) { return at_position(op) == Op::atomic_compare_exchange; }
bool may_meet(Op op) { return !compares(op) && at_position(op) != Op::atomic_exchange; }
/// Compared values are often equal, and never 0, of which there are two.
Values values_of(Op op, bool edges = false) {
  return compares(op) ? Values{.low = 1, .high = 3, .whole = true} : Values{.edges = edges};
}

/// Tiles of a tensor and of the same index of another, one CTA each; old values are stored to a third.
Case kept(Op op, ElementType type, const Setting& setting, Ordered ordered = {}, bool edges = false) {
  const Values values = values_of(op, edges);
  std::vector<Field> fields(compares(op) ? 2 : 1, input(type, setting.extents, Layout::dense, values));
  const int to = static_cast<int>(fields.size());
  fields.push_back(update(type, setting.extents, setting.layout, values));
  fields.push_back(output(type, setting.extents));
  Sketch sketch(std::move(fields));
  const std::vector<Id> at = sketch.tiles(0, setting.tile);
  std::vector<Id> in;
  for (int i = 0; i < to; ++i) in.push_back(sketch.load(i, type, at, setting.tile));
  in.push_back(sketch.tensor(to));
  sketch.store(to + 1, at, sketch.apply(op, type, access(in, at), ordered.attributes()));
  return sketch.finish(op, type, setting.name() + ordered.name() + (edges ? ", extreme numbers" : ""));
}

/// Tiles for the first ones of a tensor, by many CTAs at once.
Case met(Op op, ElementType type, std::int64_t blocks, const Setting& setting, Ordered ordered = {}) {
  std::vector<std::int64_t> all = setting.extents;
  all[0] *= blocks;
  Sketch sketch({input(type, all), update(type, setting.extents, setting.layout)});
  const std::vector<Id> to = sketch.origin(setting.tile.rank());
  std::vector<Id> from = to;
  from[0] = sketch.grid({blocks})[0];
  sketch.apply(op, type, access({sketch.load(0, type, from, setting.tile), sketch.tensor(1)}, to),
               ordered.attributes());
  return sketch.finish(op, type, fmt::format("{} blocks, {}{}", blocks, setting.name(), ordered.name()));
}

/// One number, which all threads of a CTA have, for an element of the CTA: the old one decides what is done then.
Case decides(Op op, ElementType type) {
  const Values values = values_of(op);
  std::vector<Field> fields(compares(op) ? 2 : 1, input(type, {6}, Layout::dense, values));
  const int to = static_cast<int>(fields.size());
  fields.push_back(update(type, {6}, Layout::dense, values));
  fields.push_back(update(type, {6, 40}));
  Sketch sketch(std::move(fields));
  const std::vector<Id> at = sketch.grid({6});
  std::vector<Id> in;
  for (int i = 0; i < to; ++i) in.push_back(sketch.load(i, type, at, {1}));
  in.push_back(sketch.tensor(to));
  const Id old = sketch.apply(op, type, access(in, at), Ordered{MemoryOrder::acq_rel}.attributes());
  const Id number = sketch.apply(Op::reshape, {old}, {}, Shape());
  const Id large = sketch.apply(Op::greater, ElementType::pred, {number, sketch.constant(type, 2)});
  const std::vector<Id> row{at[0], sketch.index(0)};
  sketch.branch(large, [&] { sketch.store(to + 1, row, sketch.apply(Op::broadcast, {old}, {}, Shape{1, 40})); });
  return sketch.finish(op, type, "one number, by which a branch is taken");
}

/// Elements of a table by tiles of their indices; old values are stored to a third tensor, unless indices repeat.
struct Changes {
  Shape tile;
  std::vector<std::int64_t> moved;  ///< extents of the moved elements
  std::vector<std::int64_t> table;  ///< extents
  std::vector<Values> indices;      ///< along each of its axes
  Layout layout = Layout::dense;    ///< of the table
  bool meet = false;
  Ordered ordered = {};

  Case of(Op op, ElementType type) const {
    const Values values = values_of(op);
    std::vector<Field> fields;
    for (const Values& along : indices) fields.push_back(input(i32, moved, Layout::dense, along));
    const int axes = static_cast<int>(indices.size()), tiles = compares(op) ? 2 : 1;
    for (int i = 0; i < tiles; ++i) fields.push_back(input(type, moved, Layout::dense, values));
    fields.push_back(update(type, table, layout, values));
    if (!meet) fields.push_back(output(type, moved));
    Sketch sketch(std::move(fields));
    const std::vector<Id> at = sketch.tiles(0, tile);
    std::vector<Id> in;
    for (int i = 0; i < tiles; ++i) in.push_back(sketch.load(axes + i, type, at, tile));
    in.push_back(sketch.tensor(axes + tiles));
    for (int axis = 0; axis < axes; ++axis) in.push_back(sketch.load(axis, i32, at, tile));
    const Id old = sketch.apply(op, type, in, ordered.attributes());
    if (!meet) sketch.store(axes + tiles + 1, at, old);
    return sketch.finish(op, type,
                         fmt::format("{} by {} of {}, {}{}{}", text(moved), to_string(tile), text(table), text(layout),
                                     meet ? ", which meet" : "", ordered.name()));
  }
};

std::vector<Case> at_positions(Op op, ElementType type, Purpose purpose) {
  using enum MemoryOrder;
  using enum MemoryScope;
  if (!accepts(op, type)) return {};
  if (purpose != Purpose::test) {
    if (op != Op::atomic_add) return {};
    return {met(op, type, settings(purpose)[0].extents[0], {{4, 1024}, {4, 1024}})};
  }
  std::vector<Case> cases{kept(op, type, {{8, 32}, {16, 64}}),
                          kept(op, type, {{5, 33}, {13, 40}, Layout::padded}, {acquire, device}),
                          kept(op, type, {{7}, {20}, Layout::strided}, {release, block}),
                          kept(op, type, {{1, 1}, {2, 3}}, {acq_rel, system}),
                          kept(op, type, {{3, 40}, {3, 40}}, {relaxed, system}, true),
                          decides(op, type)};
  if (!may_meet(op)) return cases;
  cases.push_back(met(op, type, 5, {{8, 32}, {8, 32}}));
  cases.push_back(met(op, type, 3, {{5, 33}, {5, 33}, Layout::padded}, {acq_rel, device}));
  cases.push_back(met(op, type, 4, {{7}, {7}, Layout::strided}, {release, system}));
  cases.push_back(met(op, type, 1, {{1, 1}, {1, 1}}));
  return cases;
}

std::vector<Case> on_elements(Op op, ElementType type, Purpose purpose) {
  if (!accepts(op, type)) return {};
  const Values any{.low = -3, .high = 12};
  const auto distinct = [](double low, double high) { return Values{.low = low, .high = high, .distinct = true}; };
  if (purpose != Purpose::test) {
    if (op != Op::atomic_add_elements) return {};
    return {Changes{{1024}, {1 << 20}, {256}, {{.low = 0, .high = 255}}, Layout::dense, true}.of(op, type)};
  }
  std::vector<Case> cases{Changes{{32}, {77}, {90}, {distinct(-3, 95)}}.of(op, type),
                          Changes{{8, 16},
                                  {8, 16},
                                  {160, 11},
                                  {distinct(-9, 170), any},
                                  Layout::dense,
                                  false,
                                  {MemoryOrder::acq_rel, MemoryScope::block}}
                              .of(op, type),
                          Changes{{5, 7}, {13, 20}, {11, 300}, {any, distinct(-9, 310)}, Layout::padded}.of(op, type),
                          Changes{{1}, {3}, {9}, {distinct(1, 8)}, Layout::strided}.of(op, type)};
  if (!may_meet(op)) return cases;
  cases.push_back(Changes{{32}, {77}, {9}, {any}, Layout::dense, true}.of(op, type));
  cases.push_back(Changes{{8, 16}, {8, 16}, {9, 11}, {any, any}, Layout::dense, true}.of(op, type));
  cases.push_back(Changes{{5, 7}, {13, 20}, {9, 11}, {any, any}, Layout::padded, true}.of(op, type));
  cases.push_back(Changes{{4, 4, 4}, {6, 4, 5}, {9}, {any}, Layout::strided, true}.of(op, type));
  return cases;
}

}  // namespace

#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#define ATOMIC(name, ...)                                                                                     \
  std::vector<Case> name(ElementType type, Purpose purpose) { return at_positions(Op::name, type, purpose); } \
  std::vector<Case> name##_elements(ElementType type, Purpose purpose) {                                      \
    return on_elements(Op::name##_elements, type, purpose);                                                   \
  }
#include "tessera/graph/ops.def"

}  // namespace tessera::internal::opcheck::structural
