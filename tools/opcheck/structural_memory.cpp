// Structural ops that access memory, and those that compute indices.
#include <fmt/format.h>

#include "opcheck/setting.hpp"
#include "opcheck/sketch.hpp"
#include "opcheck/structural.hpp"

namespace tessera::internal::opcheck::structural {
namespace {

constexpr bool stored(ElementType type) { return info(type).stored; }
constexpr bool computes(ElementType type) { return info(type).computes; }

/// Copies a tensor to another with other extents, tile by tile.
struct Copy {
  Setting from;
  std::vector<std::int64_t> to = from.extents;
  Layout layout = Layout::dense;  ///< of the second
  int shift = 0;                  ///< tiles along each axis from the index of the read to that of the write
  double padding = 0;

  Case of(Op op, ElementType type) const {
    Sketch sketch({input(type, from.extents, from.layout), given(i32, shift), output(type, to, layout)});
    const std::vector<Id> at = sketch.tiles(0, from.tile);
    std::vector<Id> shifted;
    for (const Id index : at) shifted.push_back(shift ? sketch.apply(Op::add, {index, sketch.scalar(1)}) : index);
    const bool reads = op == Op::load;  // out of range, where the shift is
    sketch.store(sketch.tensor(2), reads ? at : shifted,
                 sketch.load(sketch.tensor(0), reads ? shifted : at, from.tile, padding));
    std::string name = from.name();
    if (to != from.extents || layout != from.layout) name += fmt::format(" to {}, {}", text(to), text(layout));
    if (shift) name += fmt::format(", {} tiles on", shift);
    if (padding != 0) name += fmt::format(", padding {}", padding);
    return sketch.finish(op, type, name);
  }
};

std::vector<Case> copies(Op op, ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (!stored(type)) return cases;
  for (const Setting& setting : settings(purpose))
    cases.push_back(Copy{setting, setting.extents, setting.layout}.of(op, type));
  if (purpose != Purpose::test) return cases;
  const Layout other[] = {Layout::padded, Layout::strided, Layout::transposed};
  for (const Layout layout : other) {
    const Setting dense{{8, 32}, {16, 64}}, laid_out{{8, 32}, {16, 64}, layout};
    // No ?: of two Copies: GCC 12 and 13 lose the default of `to` there.
    if (op == Op::load)
      cases.push_back(Copy{laid_out}.of(op, type));
    else
      cases.push_back(Copy{dense, dense.extents, layout}.of(op, type));
  }
  const Setting ragged{{4, 16}, {9, 21}};
  cases.push_back(Copy{ragged, {12, 32}, Layout::dense, 0, 7}.of(op, type));
  cases.push_back(Copy{ragged, {9, 21}, Layout::dense, 1, 5}.of(op, type));
  cases.push_back(Copy{ragged, {9, 21}, Layout::dense, -2}.of(op, type));
  cases.push_back(Copy{{{16}, {0}}, {0}}.of(op, type));  // GCC 13 warns of its own vector where it copies `from`'s
  cases.push_back(Copy{{{1, 2, 1, 2, 1, 3}, {2, 2, 1, 3, 2, 4}}}.of(op, type));
  return cases;
}

/// Which rows of a table.
Field rows(std::int64_t count, Values values) { return input(i32, {count}, Layout::dense, values); }

/// Rows of a table by their numbers.
struct Rows {
  Shape tile;                       ///< of the rows; its first extent is the number of rows at a time
  std::vector<std::int64_t> table;  ///< extents
  std::int64_t count = tile[0];     ///< rows to move
  Values values = {};               ///< their numbers
  Layout layout = Layout::dense;    ///< of the table
  double padding = 0;

  std::string name() const {
    return fmt::format("{} of rows {} to {} of {} by {}, {}", count, values.low, values.high, text(table),
                       to_string(tile), text(layout));
  }
  std::vector<std::int64_t> moved() const {
    std::vector<std::int64_t> extents = table;
    extents[0] = count;
    return extents;
  }
  /// A grid over the moved rows; returns the tile's index along each axis, and the numbers of its rows.
  std::pair<std::vector<Id>, Id> begin(Sketch& sketch, int parameter) const {
    std::vector<Id> at = sketch.tiles(parameter, tile);
    const Id numbers = sketch.load(0, i32, {at[0]}, {tile[0]});
    return {std::move(at), numbers};
  }

  Case gathered(ElementType type) const {
    Sketch sketch({rows(count, values), input(type, table, layout), output(type, moved())});
    const auto [at, numbers] = begin(sketch, 2);
    sketch.store(2, at, sketch.gather(sketch.tensor(1), numbers, std::span(at).subspan(1), tile, padding));
    return sketch.finish(Op::gather, type, name());
  }
  Case scattered(ElementType type) const {
    Sketch sketch({rows(count, values), input(type, moved()), update(type, table, layout)});
    const auto [at, numbers] = begin(sketch, 1);
    const std::vector<Id> moving{sketch.load(1, type, at, tile), sketch.tensor(2), numbers};
    sketch.apply(Op::scatter, access(moving, std::span(at).subspan(1)));
    return sketch.finish(Op::scatter, type, name());
  }
};

Rows large_rows(Purpose purpose) {
  const Setting setting = settings(purpose)[0];
  const std::int64_t count = setting.extents[0];
  return {{16, 256}, setting.extents, count, {.low = 0, .high = static_cast<double>(count - 1), .distinct = true}};
}

/// Elements of a table by tiles of their indices.
struct Elements {
  Shape tile;
  std::vector<std::int64_t> moved;  ///< extents of the moved elements
  std::vector<std::int64_t> table;  ///< extents
  std::vector<Values> indices;      ///< along each of its axes
  Layout layout = Layout::dense;    ///< of the table
  double padding = 0;

  Case of(Op op, ElementType type) const {
    const bool reads = op == Op::gather_elements;
    std::vector<Field> fields;
    for (const Values& values : indices) fields.push_back(input(i32, moved, Layout::dense, values));
    fields.push_back(reads ? input(type, table, layout) : input(type, moved));
    fields.push_back(reads ? output(type, moved) : update(type, table, layout));
    Sketch sketch(std::move(fields));
    const int axes = static_cast<int>(indices.size());
    const std::vector<Id> at = sketch.tiles(0, tile);
    std::vector<Id> in;
    if (!reads) in.push_back(sketch.load(axes, type, at, tile));
    in.push_back(sketch.tensor(reads ? axes : axes + 1));
    for (int axis = 0; axis < axes; ++axis) in.push_back(sketch.load(axis, i32, at, tile));
    if (reads)
      sketch.store(axes + 1, at, sketch.gather_elements(std::move(in), padding));
    else
      sketch.apply(op, type, in);
    return sketch.finish(op, type,
                         fmt::format("{} by {} of {}, {}", text(moved), to_string(tile), text(table), text(layout)));
  }
};

/// Part of an axis, with bounds that are given at launch.
struct Part {
  double start, extent;
  int step = 1;
};

/// Reads or writes a part of a tensor of [13,40].
Case sliced(ElementType type, int axis, Part part, Layout layout, bool reads) {
  const std::vector<std::int64_t> whole{13, 40}, copied{16, 48};
  Sketch sketch({reads ? input(type, whole, layout) : update(type, whole, layout), given(i32, part.start),
                 given(i32, part.extent), reads ? output(type, copied) : input(type, copied)});
  const std::vector<Id> at = sketch.grid({2, 3});
  const Id view = sketch.apply(Op::slice, {sketch.tensor(0), sketch.scalar(1), sketch.scalar(2)}, {axis, part.step});
  if (reads)
    sketch.store(3, at, sketch.load(view, at, {8, 16}));
  else
    sketch.store(view, at, sketch.load(3, type, at, {8, 16}));
  return sketch.finish(Op::slice, type,
                       fmt::format("axis {} of [13,40] {}, {} from {} by {}, {}", axis, text(layout), part.extent,
                                   part.start, part.step, reads ? "read" : "written"));
}

Case sliced_twice(ElementType type, int step) {
  Sketch sketch({input(type, {20, 9}), output(type, {8, 9})});
  const auto slice = [&](Id view, int axis, int start, int extent) {
    return sketch.apply(Op::slice, {view, sketch.index(start), sketch.index(extent)}, {axis, step});
  };
  const Id view = slice(slice(slice(sketch.tensor(0), 0, 3 * step, 12), 1, 2, 5), 0, 7, 9);
  sketch.store(1, sketch.origin(2), sketch.load(view, sketch.origin(2), {8, 9}));
  return sketch.finish(Op::slice, type, fmt::format("a slice of a slice by {}, over the edge of both", step));
}

Case permuted(ElementType type, const Setting& setting, const std::vector<std::int64_t>& axes, bool reads) {
  std::vector<std::int64_t> extents = setting.extents;
  Shape tile = setting.tile;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    extents[i] = setting.extents[static_cast<std::size_t>(axes[i])];
    tile[static_cast<int>(i)] = setting.tile[static_cast<int>(axes[i])];
  }
  Sketch sketch({reads ? input(type, setting.extents, setting.layout) : input(type, extents),
                 reads ? output(type, extents) : output(type, setting.extents, setting.layout)});
  const std::vector<Id> at = sketch.tiles(reads ? 1 : 0, tile);
  const Id view = sketch.apply(Op::permute_view, {sketch.tensor(reads ? 0 : 1)}, axes);
  if (reads)
    sketch.store(1, at, sketch.load(view, at, tile));
  else
    sketch.store(view, at, sketch.load(0, type, at, tile));
  return sketch.finish(Op::permute_view, type,
                       fmt::format("axes {} of {}, {}", text(axes), setting.name(), reads ? "read" : "written"));
}

/// Axis, size and step of windows.
struct Cut {
  std::int64_t axis, size, step;
};

/// Reads or writes windows of a tensor.
Case unfolded(ElementType type, const std::vector<std::int64_t>& whole, Cut cut, const Shape& tile, Layout layout,
              bool reads) {
  std::vector<std::int64_t> windows = whole;
  std::int64_t& along = windows[static_cast<std::size_t>(cut.axis)];
  along = along < cut.size ? 0 : (along - cut.size) / cut.step + 1;
  windows.insert(windows.begin() + cut.axis + 1, cut.size);
  for (std::int64_t& extent : windows) ++extent;  // elements after the last are read as padding, and dropped
  Sketch sketch({reads ? input(type, whole, layout) : update(type, whole, layout),
                 reads ? output(type, windows) : input(type, windows)});
  const std::vector<Id> at = sketch.tiles(1, tile);
  const Id view = sketch.apply(Op::unfold_view, {sketch.tensor(0)}, {cut.axis, cut.size, cut.step});
  if (reads)
    sketch.store(1, at, sketch.load(view, at, tile));
  else
    sketch.store(view, at, sketch.load(1, type, at, tile));
  return sketch.finish(Op::unfold_view, type,
                       fmt::format("axis {} of {} {} by {}, {} apart, {}", cut.axis, text(whole), text(layout),
                                   cut.size, cut.step, reads ? "read" : "written"));
}

/// Two axes flattened.
Case flattened(ElementType type, const std::vector<std::int64_t>& whole, std::int64_t axis, const Shape& tile,
               bool reads) {
  std::vector<std::int64_t> flat = whole;
  flat[static_cast<std::size_t>(axis)] *= flat[static_cast<std::size_t>(axis) + 1];
  flat.erase(flat.begin() + axis + 1);
  ++flat[0];
  Sketch sketch({reads ? input(type, whole) : update(type, whole), reads ? output(type, flat) : input(type, flat)});
  const std::vector<Id> at = sketch.tiles(1, tile);
  const Id view = sketch.apply(Op::flatten_view, {sketch.tensor(0)}, {axis});
  if (reads)
    sketch.store(1, at, sketch.load(view, at, tile));
  else
    sketch.store(view, at, sketch.load(1, type, at, tile));
  return sketch.finish(
      Op::flatten_view, type,
      fmt::format("axes {} and {} of {}, {}", axis, axis + 1, text(whole), reads ? "read" : "written"));
}

/// A tile of each tensor of a list, and of two that the list does not have, with a row for each in another tensor.
Case listed(ElementType type, const std::vector<std::vector<std::int64_t>>& tensors, const std::vector<Layout>& layouts,
            const Shape& tile, bool reads) {
  std::vector<Field> fields;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Layout layout = layouts[i % layouts.size()];
    fields.push_back(reads ? input(type, tensors[i], layout) : update(type, tensors[i], layout));
  }
  fields = list(std::move(fields));
  const auto numbers = static_cast<std::int64_t>(tensors.size()) + 2;
  std::vector<std::int64_t> rows{numbers};
  Shape row = Shape::of_rank(tile.rank() + 1);
  row[0] = 1;
  for (int axis = 0; axis < tile.rank(); ++axis) rows.push_back(row[axis + 1] = tile[axis]);
  const auto other = static_cast<int>(fields.size());
  fields.push_back(reads ? output(type, rows) : input(type, rows));
  Sketch sketch(fields);
  const Id block = sketch.grid({numbers})[0];
  const Id tensor = sketch.apply(Op::member, stored_as(type), {sketch.apply(Op::sub, {block, sketch.index(1)})}, {0});
  std::vector<Id> at{block};
  for (const Id zero : sketch.origin(tile.rank())) at.push_back(zero);
  const std::vector<Id> start = sketch.origin(tile.rank());
  if (reads)
    sketch.store(other, at, sketch.apply(Op::reshape, {sketch.load(tensor, start, tile, 1)}, {}, row));
  else
    sketch.store(tensor, start, sketch.apply(Op::reshape, {sketch.load(sketch.tensor(other), at, row)}, {}, tile));
  return sketch.finish(Op::member, type,
                       fmt::format("{} tensors, the first {} {}, {}", tensors.size(), text(tensors[0]),
                                   text(layouts[0]), reads ? "read" : "written"));
}

}  // namespace

std::vector<Case> scalar(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (!computes(type) || purpose != Purpose::test) return cases;
  for (const double value : {0.0, -7.0, 2147483520.0}) {
    Sketch sketch({given(type, value), output(type, {5, 33})});
    sketch.store(1, sketch.origin(2), sketch.apply(Op::broadcast, {sketch.scalar(0)}, {}, {5, 33}));
    cases.push_back(sketch.finish(Op::scalar, type, fmt::format("{}", value)));
  }
  return cases;
}

std::vector<Case> tensor(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (!stored(type) || purpose != Purpose::test) return cases;
  for (const Layout layout : {Layout::dense, Layout::padded, Layout::strided, Layout::transposed})
    cases.push_back(Copy{{{3, 8, 16}, {3, 8, 16}, layout}, {3, 8, 16}, layout}.of(Op::tensor, type));
  return cases;
}

std::vector<Case> member(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (!stored(type) || purpose != Purpose::test) return cases;
  for (const bool reads : {true, false}) {
    cases.push_back(listed(type, {{8, 16}, {5, 32}, {9, 7}}, {Layout::dense}, {8, 16}, reads));
    cases.push_back(listed(type, {{4, 8}, {3, 40}}, {Layout::padded, Layout::strided}, {4, 8}, reads));
    cases.push_back(listed(type, {{16, 8}, {8, 8}}, {Layout::transposed, Layout::dense}, {8, 8}, reads));
    cases.push_back(listed(type, {{128}, {64}, {0}, {1}}, {Layout::dense}, {64}, reads));
    cases.push_back(listed(type, {{33}}, {Layout::padded}, {32}, reads));
  }
  return cases;
}

std::vector<Case> slice(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (!stored(type) || purpose != Purpose::test) return cases;
  for (const bool reads : {true, false}) {
    cases.push_back(sliced(type, 0, {3, 8}, Layout::dense, reads));
    cases.push_back(sliced(type, 1, {5, 50}, Layout::padded, reads));
    cases.push_back(sliced(type, 1, {-3, 20}, Layout::strided, reads));
    cases.push_back(sliced(type, 0, {4, 0}, Layout::dense, reads));
    cases.push_back(sliced(type, 0, {-2, 9, 2}, Layout::dense, reads));
    cases.push_back(sliced(type, 1, {41, 44, -1}, Layout::padded, reads));
    cases.push_back(sliced(type, 1, {1, 12, 3}, Layout::strided, reads));
  }
  for (const int step : {1, 2, -1}) cases.push_back(sliced_twice(type, step));
  return cases;
}

std::vector<Case> permute_view(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (!stored(type) || purpose != Purpose::test) return cases;
  for (const bool reads : {true, false}) {
    cases.push_back(permuted(type, {{16, 8}, {32, 16}}, {1, 0}, reads));
    cases.push_back(permuted(type, {{5, 7}, {11, 13}, Layout::padded}, {1, 0}, reads));
    cases.push_back(permuted(type, {{2, 1, 8}, {3, 2, 11}, Layout::transposed}, {2, 0, 1}, reads));
    cases.push_back(permuted(type, {{4, 8}, {7, 8}, Layout::strided}, {0, 1}, reads));
  }
  return cases;
}

std::vector<Case> unfold_view(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (!stored(type) || purpose != Purpose::test) return cases;
  for (const bool reads : {true, false}) {
    cases.push_back(unfolded(type, {13, 48}, {1, 16, 16}, {4, 2, 16}, Layout::dense, reads));
    cases.push_back(unfolded(type, {13, 48}, {1, 6, 6}, {8, 4, 8}, Layout::padded, reads));
    cases.push_back(unfolded(type, {40, 7}, {0, 8, 11}, {2, 4, 8}, Layout::strided, reads));
    cases.push_back(unfolded(type, {5, 3}, {1, 4, 4}, {2, 2, 4}, Layout::dense, reads));
  }
  cases.push_back(unfolded(type, {3, 40}, {1, 8, 3}, {1, 4, 8}, Layout::dense, true));
  cases.push_back(unfolded(type, {3, 40}, {1, 5, 1}, {2, 16, 8}, Layout::transposed, true));
  return cases;
}

std::vector<Case> flatten_view(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (!stored(type) || purpose != Purpose::test) return cases;
  for (const bool reads : {true, false}) {
    cases.push_back(flattened(type, {3, 5, 16}, 0, {8, 8}, reads));
    cases.push_back(flattened(type, {3, 5, 16}, 1, {2, 32}, reads));
    cases.push_back(flattened(type, {7, 9}, 0, {16}, reads));
  }
  return cases;
}

std::vector<Case> extent(ElementType type, Purpose purpose) {
  std::vector<Case> cases;
  if (!stored(type) || purpose != Purpose::test) return cases;
  for (int axis = 0; axis < 3; ++axis) {
    Sketch sketch({input(type, {5, 1, 0}), output(i32, {4})});
    const Id extent = sketch.apply(Op::extent, i32, {sketch.tensor(0)}, {axis});
    sketch.store(1, sketch.origin(1), sketch.apply(Op::broadcast, {extent}, {}, {4}));
    cases.push_back(sketch.finish(Op::extent, type, fmt::format("axis {} of [5,1,0]", axis)));
  }
  std::vector<Field> fields = list({input(type, {5, 3}), input(type, {0, 7})});
  fields.push_back(output(i32, {4}));
  Sketch sketch(fields);
  const Id block = sketch.grid({4})[0];
  const Id tensor = sketch.apply(Op::member, stored_as(type), {sketch.apply(Op::sub, {block, sketch.index(1)})}, {0});
  const Id extent = sketch.apply(Op::extent, i32, {tensor}, {1});
  sketch.store(3, {block}, sketch.apply(Op::broadcast, {extent}, {}, {1}));
  cases.push_back(sketch.finish(Op::extent, type, "axis 1 of the tensors of a list"));
  return cases;
}

std::vector<Case> load(ElementType type, Purpose purpose) { return copies(Op::load, type, purpose); }
std::vector<Case> store(ElementType type, Purpose purpose) {
  std::vector<Case> cases = copies(Op::store, type, purpose);
  if (!cases.empty() && purpose == Purpose::test) {
    Sketch sketch({update(type, {4, 9})});  // swaps rows 0 and 1, and then 1 and 2
    const auto row = [&](int i) { return std::vector{sketch.index(i), sketch.index(0)}; };
    for (const int i : {0, 1}) {
      const Id x = sketch.load(0, type, row(i), {1, 9}), y = sketch.load(0, type, row(i + 1), {1, 9});
      sketch.store(0, row(i), y);
      sketch.store(0, row(i + 1), x);
    }
    cases.push_back(sketch.finish(Op::store, type, "to an InOut, read again"));
  }
  return cases;
}

std::vector<Case> gather(ElementType type, Purpose purpose) {
  if (!stored(type)) return {};
  if (purpose != Purpose::test) return {large_rows(purpose).gathered(type)};
  const Values any{.low = -3, .high = 12};
  return {Rows{{8, 32}, {9, 64}, 16, any}.gathered(type),
          Rows{{5, 7}, {9, 20}, 13, any, Layout::padded, 3}.gathered(type), Rows{{7}, {9}, 7, any}.gathered(type),
          Rows{{4, 2, 5}, {9, 3, 11}, 6, any, Layout::transposed}.gathered(type),
          Rows{{1, 6}, {9, 6}, 3, any, Layout::strided}.gathered(type)};
}

std::vector<Case> scatter(ElementType type, Purpose purpose) {
  if (!stored(type)) return {};
  if (purpose != Purpose::test) return {large_rows(purpose).scattered(type)};
  const Values distinct{.low = -3, .high = 17, .distinct = true};
  return {Rows{{8, 32}, {14, 64}, 16, distinct}.scattered(type),
          Rows{{5, 7}, {14, 20}, 13, distinct, Layout::padded}.scattered(type),
          Rows{{7}, {14}, 7, distinct}.scattered(type),
          Rows{{4, 2, 5}, {14, 3, 11}, 6, distinct, Layout::transposed}.scattered(type),
          Rows{{8, 6}, {9, 6}, 8, {.low = 2, .high = 4}}.scattered(type)};
}

std::vector<Case> gather_elements(ElementType type, Purpose purpose) {
  if (!stored(type)) return {};
  constexpr Op op = Op::gather_elements;
  const Values any{.low = -3, .high = 12};
  if (purpose != Purpose::test)
    return {Elements{{1024}, {1 << 20}, {1 << 20}, {{.low = 0, .high = (1 << 20) - 1}}}.of(op, type)};
  return {Elements{{32}, {77}, {9}, {any}}.of(op, type), Elements{{8, 16}, {8, 16}, {9, 11}, {any, any}}.of(op, type),
          Elements{{5, 7}, {13, 20}, {9, 11}, {any, any}, Layout::padded, 3}.of(op, type),
          Elements{{4, 4, 4}, {6, 4, 5}, {9}, {any}, Layout::strided}.of(op, type),
          Elements{{33}, {33}, {9, 3, 11}, {any, {.low = -1, .high = 3}, any}, Layout::transposed, 5}.of(op, type)};
}

std::vector<Case> scatter_elements(ElementType type, Purpose purpose) {
  if (!stored(type)) return {};
  constexpr Op op = Op::scatter_elements;
  const Values any{.low = -3, .high = 12};
  const auto distinct = [](double low, double high) { return Values{.low = low, .high = high, .distinct = true}; };
  if (purpose != Purpose::test)
    return {Elements{{1024}, {1 << 20}, {1 << 20}, {distinct(0, (1 << 20) - 1)}}.of(op, type)};
  return {Elements{{32}, {77}, {90}, {distinct(-3, 95)}}.of(op, type),
          Elements{{8, 16}, {8, 16}, {160, 11}, {distinct(-9, 170), any}}.of(op, type),
          Elements{{5, 7}, {13, 20}, {11, 300}, {any, distinct(-9, 310)}, Layout::padded}.of(op, type),
          Elements{{4, 4, 4}, {6, 4, 5}, {140}, {distinct(-9, 150)}, Layout::strided}.of(op, type),
          Elements{{33}, {33}, {9, 3, 60}, {any, {.low = -1, .high = 3}, distinct(-5, 64)}, Layout::transposed}.of(op, type)};
}

}  // namespace tessera::internal::opcheck::structural
