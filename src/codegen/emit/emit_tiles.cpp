#include "codegen/emit/emit_tiles.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "codegen/plan/names.hpp"
#include "codegen/plan/spelling.hpp"

namespace tessera::internal::codegen {
namespace {

IndexExpression window_name(const TileAccess& access, std::size_t axis) {
  return IndexExpression::variable(fmt::format("{}_in{}", name_of(access.label), axis));
}

// The condition of a window of one position, or its name.
IndexExpression window_of(const Writer& w, const TileAccess& access, std::size_t axis) {
  const IndexExpression name = window_name(access, axis);
  const auto found = w.once.find(name.text());
  return found == w.once.end() ? name : found->second;
}

// The address of the tile's first element.
std::string base_of(const Writer& w, const TileAccess& access) {
  const std::string name = name_of(access.label) + "_base";
  const auto found = w.once.find(name);
  return found == w.once.end() ? name : found->second.text();
}

IndexExpression start_name(const TileAccess& access, std::size_t axis) {
  return IndexExpression::variable(fmt::format("{}_at{}", name_of(access.label), axis));
}

// Start of a tile along an axis of the view that it belongs to. 64-bit, since it may be far outside.
IndexExpression start_in_view(Writer& w, const TileAccess::Axis& axis) {
  const IndexExpression index = scalar(w, axis.index);
  return axis.extent == 1 && axis.slices.empty() ? index : cast_i64(index) * axis.extent;
}

// Start of a tile along an axis of the tensor.
IndexExpression start_of(Writer& w, const TileAccess& access, std::size_t i) {
  const TileAccess::Axis& axis = access.axes[i];
  IndexExpression start = access.is_gathered(i) ? cast_i64(0) : start_in_view(w, axis);
  for (const TileAccess::Slice& slice : axis.slices) start = start * slice.step + scalar(w, slice.start);
  return start;
}

// Number of positions along an axis of a view before slicing; below 1 if not even one window fits.
IndexExpression extent_of(Writer& w, const TileAccess& access, const TileAccess::Axis& axis) {
  if (axis.viewed.within > 0) return axis.viewed.within;
  IndexExpression extent = w.extent(access, axis.tensor_axis);
  for (std::size_t i = axis.viewed.outer.size(); i-- > 0;) extent = w.extent(access, axis.viewed.outer[i]) * extent;
  for (const auto& [size, step] : axis.viewed.windows) extent = (extent + (step - size)) / step;
  return extent;
}

// The condition on a position p of a tile's axis that 0 <= start + p * step < extent, for a view in between or for the
// tensor.
struct Range {
  IndexExpression start, extent;
  std::int64_t step;
  bool positive;  // start >= 0 is known
};

// The positions of a tile's axis that are inside: those in [low, high), which are known as constants, for which all
// ranges hold.
struct Inside {
  std::int64_t low, high;
  std::vector<Range> ranges;  // the tensor's is the last, unless it is decided by constants

  bool is_none() const { return low >= high; }
  // Returns true if the only condition is the end of the tensor, counted from the first position.
  bool is_from_first() const { return low == 0 && ranges.size() == 1 && ranges[0].start.is(0) && ranges[0].step == 1; }
  // Returns true for a tile of one position with a single condition, that it is in the tensor.
  bool is_one(const TileAccess::Axis& axis) const { return axis.extent == 1 && ranges.size() == 1; }
};

Inside inside_of(Writer& w, const TileAccess& access, std::size_t i) {
  const TileAccess::Axis& axis = access.axes[i];
  const std::int64_t tile = axis.extent;
  Inside inside{0, tile, {}};
  std::int64_t step = 1;
  const auto add = [&](const IndexExpression& start, const IndexExpression& extent, bool positive) {
    if (start.is_constant() && step == 1) {
      const std::int64_t first = std::max(start.value(), -tile);
      inside.low = std::max(inside.low, -first);
      if (extent.is_constant()) {
        inside.high = std::min(inside.high, extent.value() - first);
        return;
      }
    }
    inside.ranges.push_back({start, extent, step, positive || (start.is_constant() && start.value() >= 0)});
  };
  IndexExpression start = start_in_view(w, axis);
  bool positive = axis.positive;
  for (const TileAccess::Slice& slice : axis.slices) {
    add(start, scalar(w, slice.extent), positive);
    const IndexExpression by = scalar(w, slice.start);
    positive &= by.is_constant() && by.value() >= 0 && slice.step > 0;
    start = start * slice.step + by;
    step *= slice.step;
  }
  add(start, extent_of(w, access, axis), positive);
  return inside;
}

// The bounds check of a position of a tile's axis: the predicate that it is inside.
IndexExpression inside_axis(Writer& w, const TileAccess& access, std::size_t i, const IndexExpression& at) {
  const TileAccess::Axis& axis = access.axes[i];
  const Inside inside = inside_of(w, access, i);
  const IndexExpression declared = window_of(w, access, i), in_tile = at < inside.high;
  if (inside.is_none() || in_tile.is_never()) return IndexExpression::never();
  if (inside.ranges.empty()) return both(at >= inside.low, in_tile);
  if (inside.is_one(axis)) return both(in_tile, declared);
  if (inside.is_from_first()) {
    const IndexExpression& extent = inside.ranges[0].extent;
    return at < (in_tile.is_always() ? extent : IndexExpression::call("minimum", {extent, inside.high}));
  }
  return axis.positive && axis.slices.empty() ? at < IndexExpression::variable(fmt::format("{}.high", declared))
                                              : IndexExpression::call("within", {declared, at});
}

// Declares the window of an axis, the intersection of all ranges. The tile starts at `of_tensor`, which the text calls
// `at`.
void declare_window(Writer& w, const TileAccess& access, std::size_t i, const IndexExpression& of_tensor,
                    const IndexExpression& at, bool once) {
  const Inside inside = inside_of(w, access, i);
  if (inside.is_none() || inside.ranges.empty()) return;
  const auto named = [&](const IndexExpression& start) {
    return !start.is_constant() && !start.is_primary() && start.text() == of_tensor.text() ? at : start;
  };
  if (inside.is_one(access.axes[i])) {
    const Range& range = inside.ranges[0];
    const IndexExpression start = named(range.start);
    const IndexExpression condition =
        both(range.positive ? IndexExpression::always() : start >= 0, start < range.extent);
    if (!once) return w.line("const bool {} = {};", window_name(access, i), condition);
    w.once.insert_or_assign(window_name(access, i).text(), condition);
    return;
  }
  if (inside.is_from_first()) return;
  IndexExpression all = 0;
  bool first = true, low = inside.low == 0;
  const auto add = [&](const IndexExpression& window) {
    all = std::exchange(first, false) ? window : IndexExpression::call("both", {all, window});
  };
  for (const Range& range : inside.ranges) {
    const IndexExpression start = named(range.start);
    add(range.step == 1 ? IndexExpression::call("window", {start, inside.high, range.extent})
                        : IndexExpression::call("stepped_window", {start, range.step, inside.high, range.extent}));
    low |= range.step == 1 && range.start.is(-inside.low);
  }
  if (!low) add(IndexExpression::raw(fmt::format("Window{{{}, {}}}", inside.low, inside.high)));
  w.line("const Window {} = {};", window_name(access, i), all);
}

// For a gathered axis: the condition that the row is inside every view in between and the tensor.
IndexExpression row_inside(Writer& w, const TileAccess& access, const TileAccess::Axis& axis,
                           const IndexExpression& row) {
  IndexExpression inside = IndexExpression::always(), position = row;
  for (const TileAccess::Slice& slice : axis.slices) {
    inside = both(inside, both(position >= 0, position < scalar(w, slice.extent)));
    if (slice.step != 1) position = cast_i64(position) * slice.step;
    if (!scalar(w, slice.start).is(0)) position = cast_i64(position) + scalar(w, slice.start);
  }
  return both(inside, both(position >= 0, position < extent_of(w, access, axis)));
}

std::string row_name(const TileAccess& access, std::size_t axis) {
  return name_of(access.label) + (access.rows ? "_row" : fmt::format("_element{}", axis));
}

Spot spot_of(Writer& w, const TileAccess& access, const std::vector<IndexExpression>& at) {
  IndexExpression inside = IndexExpression::always(), offset = 0;
  for (std::size_t i = 0; i < access.axes.size(); ++i) {
    const TileAccess::Axis& axis = access.axes[i];
    if (axis.tensor_axis < 0) {
      if (!at[i].is(0)) inside = both(inside, at[i] < 1);
      continue;
    }
    const IndexExpression by = stride_of(w, access, i);
    if (access.is_gathered(i)) {
      const IndexExpression row = IndexExpression::variable(row_name(access, i));
      inside = both(inside, row_inside(w, access, axis, row));
      offset = offset + (by.is(1) ? row : cast_i64(row) * by);
      continue;
    }
    inside = both(inside, inside_axis(w, access, i, at[i]));
    offset = offset + at[i] * by;
  }
  return {inside, offset};
}

// The address of the tensor's first element.
std::string first_element(const Writer& w, const TileAccess& access) {
  return access.member ? member_name(access) + ".data" : tensor_name(w.plan, access.parameter);
}

Spot checked(Writer& w, const TileAccess& access, Spot spot) {
  if (!w.plan.debug) return spot;
  std::vector<std::string> low{"0"}, high{"0"};
  for (int axis = 0; axis < w.tensor(access.parameter).rank; ++axis) {
    const IndexExpression reach = (w.extent(access, axis) - 1) * cast_i64(w.stride(access, axis));
    low.push_back(fmt::format("reach_below({})", reach));
    high.push_back(fmt::format("reach_above({})", reach));
  }
  w.line("{}check_offset({}_base - {} + ({}), {}, {}, {}, {});", guard(spot.inside), name_of(access.label),
         first_element(w, access), spot.offset, access.vector, fmt::join(low, " + "), fmt::join(high, " + "),
         w.author_line);
  return spot;
}

// Elements beyond the tile that the layout covers do not exist.
Spot spot_of_element(Writer& w, const Sweep& sweep, const TileAccess& access, const IndexExpression& index) {
  for (std::size_t i = 0; i < access.axes.size(); ++i)
    w.line("const int {} = {};", row_name(access, i),
           spelled(w, sweep, *access.axes[i].element, ElementType::i32, index).text);
  Spot result = spot_of(w, access, std::vector<IndexExpression>(access.axes.size(), 0));
  for (int axis = 0; axis < sweep.shape.rank(); ++axis)
    if (sweep.layout.covers_more(axis, sweep.shape))
      result.inside = both(coordinate(w, sweep, axis, index) < sweep.shape[axis], result.inside);
  return checked(w, access, std::move(result));
}

std::string_view reader(const TileAccess& access) {
  return access.kept ? "read_evict_last" : access.in_order ? "read_no_hoist" : "read_input";
}
// The last argument of the read function.
std::string priority(Writer& w, const TileAccess& access) {
  if (!access.kept) return "";
  w.uses.kept.insert(access.parameter);
  return fmt::format(", {}_priority", tensor_name(w.plan, access.parameter));
}

// Address, mask and padding of a read. The padding of an input may be omitted if it is 0.
std::string source(Writer& w, const TileAccess& access, const Spot& at) {
  return fmt::format("{}, {}{}", address(w, access, at), at.inside,
                     access.read_only && access.padding == 0 ? priority(w, access) : ", " + padding(w, access));
}

// The address of the thread's first element. The others are at multiples of a stride from it, the same for all threads,
// so an address takes one instruction and neighbors share it.
std::string run_name(const TileAccess& read) { return name_of(read.label) + "_run"; }
void declare_run(Writer& w, const Sweep& sweep, const TileAccess& read) {
  w.line("const auto* const {} = {};", run_name(read), address(w, read, spot(w, sweep, read, 0)));
}
void read_run(Writer& w, const Sweep& sweep, const TileAccess& read, const IndexExpression& group, bool whole) {
  const int shift = sweep.shape.rank() - static_cast<int>(read.axes.size());
  IndexExpression offset = 0;
  for (int i = 0; i < static_cast<int>(read.axes.size()); ++i) {
    const TileAccess::Axis& axis = read.axes[static_cast<std::size_t>(i)];
    if (axis.tensor_axis < 0) continue;
    const IndexExpression further = digits(sweep.layout.register_digits(i + shift), group);
    offset = offset + cast_i64(further) * stride_of(w, read, static_cast<std::size_t>(i));
  }
  const std::string name = name_of(read.label);
  w.line("{} {}[{}];", register_type(w.tensor(read.parameter).type), name, read.run);
  const IndexExpression run = IndexExpression::variable(run_name(read) + "_at");
  w.line("const auto* const {} = {};", run, beyond(run_name(read), offset));
  for (int i = 0; i < read.run; i += read.vector) {
    const IndexExpression inside = whole ? IndexExpression::always() : spot(w, sweep, read, group + i).inside;
    w.line("{}<{}>({}, {}, {}{});", reader(read), read.vector, beyond(name, i), run + i, inside, priority(w, read));
  }
}

// The condition that a tile's first and last element, and so all of it, are in the tensor.
IndexExpression is_whole(Writer& w, const TileAccess& access) {
  IndexExpression whole = IndexExpression::always();
  for (std::size_t i = 0; i < access.axes.size(); ++i)
    if (access.axes[i].tensor_axis >= 0)
      for (const int at : {0, access.axes[i].extent - 1}) whole = both(whole, inside_axis(w, access, i, at));
  return whole;
}

void elements(Writer& w, const Sweep& sweep, const Each& each, const Each& begin, const Each& end) {
  const int count = sweep.layout.registers();
  const auto element_reads = [&](const IndexExpression& index) {
    for (const TileAccess& read : sweep.reads) {
      if (read.vector > 1 || read.run > 1) continue;
      const Spot at = spot(w, sweep, read, index);
      w.line("const {} {} = {};", register_type(w.tensor(read.parameter).type), name_of(read.label),
             read_element(w, read, at));
    }
  };
  const auto around = [](const Each& what, const IndexExpression& index) {
    if (what) what(index);
  };
  if (count == 1 || sweep.vector == 1) {
    const IndexExpression index = count == 1 ? IndexExpression(0) : IndexExpression::variable("r", count);
    if (count > 1) {
      w.unroll(sweep);
      w.open("for (int r = 0; r < {}; ++r) {{", count);
    }
    element_reads(index);
    around(begin, index);
    each(index);
    around(end, index);
    if (count > 1) w.close();
    return;
  }
  const IndexExpression group = IndexExpression::variable("g", count), index = IndexExpression::variable("r", count);
  const auto groups = [&](bool whole) {
    w.unroll(sweep);
    w.open("for (int g = 0; g < {}; g += {}) {{", count, sweep.vector);
    for (const TileAccess& read : sweep.reads) {
      if (read.run > 1) read_run(w, sweep, read, group, whole);
      if (read.vector == 1 || read.run > 1) continue;
      const std::string name = name_of(read.label);
      w.line("{} {}[{}];", register_type(w.tensor(read.parameter).type), name, sweep.vector);
      if (read.vector == sweep.vector) {
        w.line("{}", read_vector(w, read, spot(w, sweep, read, group), name));
        continue;
      }
      w.unroll(true);
      w.open("for (int v = g; v < g + {}; v += {}) {{", sweep.vector, read.vector);
      const Spot at = spot(w, sweep, read, IndexExpression::variable("v", count));
      w.line("{}", read_vector(w, read, at, name + " + v - g"));
      w.close();
    }
    around(begin, group);
    w.unroll(true);
    w.open("for (int r = g; r < g + {}; ++r) {{", sweep.vector);
    element_reads(index);
    each(index);
    w.close();
    around(end, group);
    w.close();
  };
  // Conditions would take as many instructions as reads, and most tiles are entirely inside: these get a text without
  // conditions.
  IndexExpression whole = IndexExpression::always();
  bool runs = false;
  for (const TileAccess& read : sweep.reads) {
    if (read.run == 1) continue;
    declare_run(w, sweep, read);
    whole = both(whole, is_whole(w, read));
    runs = true;
  }
  if (!runs) return groups(false);
  w.open("if ({}) {{", whole);
  groups(true);
  w.close();
  w.open("else {{");
  groups(false);
  w.close();
}

}  // namespace

IndexExpression stride_of(const Writer& w, const TileAccess& access, std::size_t i) {
  const TileAccess::Axis& axis = access.axes[i];
  if (!access.leaves_first(i)) return 0;
  const IndexExpression stride = w.stride(access, axis.tensor_axis) * axis.step();
  // Strides of a variant with 64-bit offsets are 64-bit, except for constants.
  const bool far = w.plan.variant.index64 && beyond_narrow(static_cast<std::uint64_t>(access.reach(axis.tensor_axis)));
  return stride.is_constant() && far ? cast_i64(stride) : stride;
}

void place(Writer& w, const TileAccess& access, bool writes, bool once) {
  w.once.clear();
  const std::string name = name_of(access.label);
  if (access.member)
    w.line("const auto& {} = {}[{}];", member_name(access), tensor_name(w.plan, access.parameter),
           scalar(w, *access.member));
  IndexExpression offset = 0;
  // The start along the contiguous axis is converted by the sum, or by the pointer that it is added to.
  const auto step = [&](const IndexExpression& start, const IndexExpression& by) {
    return by.is(1) ? start : cast_i64(start) * by;
  };
  // If a tile is outside along one axis, its position along the others does not matter.
  bool none = false;
  for (std::size_t i = 0; i < access.axes.size(); ++i)
    none |= access.axes[i].tensor_axis >= 0 && !access.is_gathered(i) && inside_of(w, access, i).is_none();
  for (std::size_t i = 0; i < access.axes.size(); ++i) {
    const int axis = access.axes[i].tensor_axis;
    if (axis < 0) continue;
    const IndexExpression start = start_of(w, access, i), by = w.stride(access, axis) * access.axes[i].viewed.factor;
    const bool is_name = start.is_primary() && (!start.is_constant() || start.is(0));
    const IndexExpression at = is_name ? start : start_name(access, i);
    if (!is_name) w.line("const i64 {} = {};", at, start);
    if (!start.is(0)) offset = offset + (is_name ? step(start, by) : at * by);
    if (!none && !access.is_gathered(i)) declare_window(w, access, i, start, at, once);
  }
  std::string base = beyond(first_element(w, access), offset);
  if (access.from_here) base = fmt::format("from_here({})", base);
  if (once) {
    w.once.insert_or_assign(name + "_base", IndexExpression::raw(base));
    return;
  }
  w.line("{}{}* const {}_base = {};", writes ? "" : "const ", memory_type(w.tensor(access.parameter).type), name, base);
}

Spot spot(Writer& w, const TileAccess& access, const std::vector<IndexExpression>& at) {
  return checked(w, access, spot_of(w, access, at));
}

Spot spot(Writer& w, const Sweep& sweep, const TileAccess& access, const IndexExpression& index) {
  if (access.by_elements()) return spot_of_element(w, sweep, access, index);
  std::vector<IndexExpression> at;
  const int shift = sweep.shape.rank() - static_cast<int>(access.axes.size());
  for (int i = 0; i < static_cast<int>(access.axes.size()); ++i) {
    const bool stretched = access.axes[static_cast<std::size_t>(i)].extent == 1 && sweep.shape[i + shift] != 1;
    at.push_back(stretched ? IndexExpression(0) : coordinate(w, sweep, i + shift, index));
  }
  return spot(w, sweep, access, at, index);
}

Spot spot(Writer& w, const Sweep& sweep, const TileAccess& access, const std::vector<IndexExpression>& at,
          const IndexExpression& index) {
  if (!access.rows) return spot(w, access, at);
  const int shift = sweep.shape.rank() - static_cast<int>(access.axes.size());
  w.line("const int {} = {};", row_name(access, 0), element(w, access.rows, digits(access.rows_map, index)));
  Spot result = spot_of(w, access, at);
  // Rows beyond the tile that the layout covers do not exist.
  if (!at[0].is(0) && sweep.layout.covers_more(shift, sweep.shape))
    result.inside = both(at[0] < sweep.shape[shift], result.inside);
  return checked(w, access, std::move(result));
}

std::string address(const Writer& w, const TileAccess& access, const Spot& at) {
  return beyond(base_of(w, access), at.offset);
}

std::string padding(const Writer& w, const TileAccess& access) {
  const ElementType type = w.tensor(access.parameter).type;
  return number(type, decode(type, access.padding));
}

std::string read_vector(Writer& w, const TileAccess& access, const Spot& at, std::string_view to) {
  return fmt::format("{}<{}>({}, {});", access.read_only ? reader(access) : "read_vector", access.vector, to,
                     source(w, access, at));
}

std::string read_element(Writer& w, const TileAccess& access, const Spot& at) {
  if (access.read_only) return fmt::format("{}({})", reader(access), source(w, access, at));
  return where(at.inside, fmt::format("from_memory({}_base[{}])", name_of(access.label), at.offset),
               padding(w, access));
}

void check_number(Writer& w, ElementType type, std::string_view value, const IndexExpression& stored) {
  if (w.plan.debug && info(type).kind == ElementKind::real)
    w.line("{}check_number({}, {});", guard(stored), value, w.author_line);
}

void check_numbers(Writer& w, ElementType type, std::string_view values, int count, const IndexExpression& stored) {
  if (w.plan.debug && info(type).kind == ElementKind::real)
    w.line("{}check_numbers<{}>({}, {});", guard(stored), count, values, w.author_line);
}

void sweep(Writer& w, const Sweep& sweep, ValueId out, const Each& each, const Each& begin, const Each& end) {
  const bool scoped = !sweep.reads.empty();
  if (scoped) {
    if (out) declare(w, out, false);
    w.open("{{");
  }
  for (const TileAccess& read : sweep.reads) place(w, read, false);
  elements(w, sweep, each, begin, end);
  if (scoped) w.close();
}

IndexExpression linear(Writer& w, const Sweep& sweep, const Strides& strides, std::int64_t base,
                       const IndexExpression& index) {
  IndexExpression sum = base;
  for (int axis = 0; axis < sweep.shape.rank(); ++axis) {
    const IndexExpression at = coordinate(w, sweep.layout, axis, index);
    if (sweep.shape[axis] != 1) sum = sum + at * strides[static_cast<std::size_t>(axis)];
  }
  return sum;
}

std::string where(const IndexExpression& condition, std::string_view value, std::string_view other) {
  return condition.is_always() ? std::string(value) : fmt::format("{} ? {} : {}", condition, value, other);
}

std::string guard(const IndexExpression& condition) {
  return condition.is_always() ? "" : fmt::format("if ({}) ", condition);
}

}  // namespace tessera::internal::codegen
