#include "codegen/emit_tiles.hpp"

#include <fmt/ranges.h>

namespace tessera {

void TileEmitter::place(const TileAccess& access, bool writes) {
  const std::string tensor = tensor_name(access.parameter);
  std::vector<std::string> offset;
  for (std::size_t i = 0; i < access.axes.size(); ++i) {
    const TileAccess::Axis& axis = access.axes[i];
    if (axis.tensor_axis < 0) continue;
    const std::string at = fmt::format("{}_at{}", access.name, i), in = fmt::format("{}_in{}", access.name, i);
    const std::string extent = fmt::format("{}_extent{}", tensor, axis.tensor_axis);
    const bool gathered = access.rows >= 0 && i == 0;
    std::string start;
    if (gathered) {
      for (const TileAccess::Slice& slice : axis.slices)
        start += fmt::format("{}static_cast<i64>({})", start.empty() ? "" : " + ", scalar(slice.start));
    } else {
      std::string index = scalar(axis.index);
      start = index == "0"                              ? ""
              : axis.extent == 1 && axis.slices.empty() ? index
              : axis.extent == 1                        ? fmt::format("static_cast<i64>({})", index)
                                                        : fmt::format("static_cast<i64>({}) * {}", index, axis.extent);
      std::string window;
      for (const TileAccess::Slice& slice : axis.slices) {
        const std::string this_window =
            fmt::format("window({}, {}, {})", start.empty() ? "0" : start, axis.extent, scalar(slice.extent));
        window = window.empty() ? this_window : fmt::format("both({}, {})", window, this_window);
        const std::string by = scalar(slice.start);
        if (by != "0")
          start = start.empty() ? fmt::format("static_cast<i64>({})", by) : fmt::format("{} + {}", start, by);
      }
      const std::string this_window =
          fmt::format("window({}, {}, {})", start.empty() ? "0" : start, axis.extent, extent);
      line("const Window {} = {};", in,
           window.empty() ? this_window : fmt::format("both({}, {})", window, this_window));
    }
    if (start.empty()) continue;
    const std::string by = stride(access.parameter, axis.tensor_axis);
    // 64 bits: a tile may start far outside.
    line("const i64 {} = {};", at, start);
    offset.push_back(by.empty() ? at : fmt::format("{} * {}", at, by));
  }
  line("{}{}* const {}_base = {}{};", writes ? "" : "const ", memory_type(this->tensor(access.parameter).type),
       access.name, tensor, offset.empty() ? "" : fmt::format(" + ({})", fmt::join(offset, " + ")));
}

TileEmitter::Spot TileEmitter::checked(const TileAccess& access, Spot spot) {
  if (!plan_.debug) return spot;
  const std::string tensor = tensor_name(access.parameter);
  std::vector<std::string> low{"0"}, high{"0"};
  for (int axis = 0; axis < this->tensor(access.parameter).rank; ++axis) {
    const std::string by = stride(access.parameter, axis);
    const std::string reach =
        fmt::format("({}_extent{} - 1) * static_cast<i64>({})", tensor, axis, by.empty() ? "1" : by);
    low.push_back(fmt::format("reach_below({})", reach));
    high.push_back(fmt::format("reach_above({})", reach));
  }
  line("if ({}) check_offset({}_base - {} + ({}), {}, {}, {}, {});", spot.inside, access.name, tensor, spot.offset,
       access.vector, fmt::join(low, " + "), fmt::join(high, " + "), line_);
  return spot;
}

TileEmitter::Spot TileEmitter::spot(const TileAccess& access, const std::vector<std::string>& at,
                                    const std::string& row) {
  std::vector<std::string> inside, offset;
  for (std::size_t i = 0; i < access.axes.size(); ++i) {
    const TileAccess::Axis& axis = access.axes[i];
    if (axis.tensor_axis < 0) {
      if (at[i] != "0") inside.push_back(fmt::format("{} < 1", at[i]));
      continue;
    }
    const bool gathered = access.rows >= 0 && i == 0;
    const std::string by = stride(access.parameter, axis.tensor_axis);
    if (gathered) {
      std::string position = row;
      for (const TileAccess::Slice& slice : axis.slices) {
        inside.push_back(fmt::format("{0} >= 0 && {0} < {1}", position, scalar(slice.extent)));
        position = fmt::format("(static_cast<i64>({}) + {})", position, scalar(slice.start));
      }
      inside.push_back(
          fmt::format("{0} >= 0 && {0} < {1}_extent{2}", position, tensor_name(access.parameter), axis.tensor_axis));
      offset.push_back(by.empty() ? row : fmt::format("static_cast<i64>({}) * {}", row, by));
      continue;
    }
    const std::string in = fmt::format("{}_in{}", access.name, i);
    inside.push_back(axis.positive && axis.slices.empty() ? fmt::format("{} < {}.high", at[i], in)
                                                          : fmt::format("within({}, {})", in, at[i]));
    if (at[i] != "0") offset.push_back(by.empty() ? at[i] : fmt::format("{} * {}", atom(at[i]), by));
  }
  return {joined(inside, " && ", "true"), joined(offset, " + ", "0")};
}

TileEmitter::Spot TileEmitter::spot(const Step& step, const TileAccess& access, const std::string& index) {
  std::vector<std::string> at;
  const int shift = step.shape.rank() - static_cast<int>(access.axes.size());
  for (int i = 0; i < static_cast<int>(access.axes.size()); ++i) {
    const bool stretched = access.axes[static_cast<std::size_t>(i)].extent != step.shape[i + shift];
    at.push_back(stretched ? "0" : coordinate(step.layout, i + shift, index));
  }
  std::string row;
  if (access.rows >= 0) {
    line("const int {}_row = {};", access.name,
         element(value(access.rows), digits(access.rows_map, index, step.layout.registers())));
    row = access.name + "_row";
    // Rows that the layout has beyond the tile's are none.
    Spot result = spot(access, at, row);
    if (at[0] != "0" && step.layout.covers_more(shift, step.shape))
      result.inside = fmt::format("{} < {} && {}", at[0], step.shape[shift], result.inside);
    return checked(access, std::move(result));
  }
  return checked(access, spot(access, at, row));
}

void TileEmitter::sweep(const Step& step, const Each& each, const Each& begin, const Each& end) {
  const bool scoped = !step.reads.empty();
  if (scoped) {
    if (step.out >= 0) declare(step.out, false);
    open("{{");
  }
  for (const TileAccess& read : step.reads) place(read, false);
  elements(step, each, begin, end);
  if (scoped) close();
}

void TileEmitter::elements(const Step& step, const Each& each, const Each& begin, const Each& end) {
  const int count = step.layout.registers();
  const auto element_reads = [&](const std::string& index) {
    for (const TileAccess& read : step.reads) {
      if (read.vector > 1) continue;
      const Spot at = spot(step, read, index);
      line("const {} {} = {};", register_type(tensor(read.parameter).type), read.name, read_element(read, at));
    }
  };
  const auto around = [](const Each& what, const std::string& index) {
    if (what) what(index);
  };
  if (count == 1 || step.vector == 1) {
    const std::string index = count == 1 ? "0" : "r";
    if (count > 1) {
      unroll(step.unrolled);
      open("for (int r = 0; r < {}; ++r) {{", count);
    }
    element_reads(index);
    around(begin, index);
    each(index);
    around(end, index);
    if (count > 1) close();
    return;
  }
  unroll(step.unrolled);
  open("for (int g = 0; g < {}; g += {}) {{", count, step.vector);
  for (const TileAccess& read : step.reads) {
    if (read.vector == 1) continue;
    const ElementType type = tensor(read.parameter).type;
    const Spot at = spot(step, read, "g");
    line("{} {}[{}];", register_type(type), read.name, read.vector);
    line("{}", read_vector(read, at, read.name));
  }
  around(begin, "g");
  unroll(true);
  open("for (int r = g; r < g + {}; ++r) {{", step.vector);
  element_reads("r");
  each("r");
  close();
  around(end, "g");
  close();
}

void TileEmitter::compute(const Step& step) {
  declare(step.out);
  const bool masked = step.replica_lanes || step.replica_warps;
  std::string mask;
  if (masked) {
    if (step.replica_lanes) use("lane");
    if (step.replica_warps) use("warp");
    mask = both(step.replica_lanes ? fmt::format("(lane & {}) == 0", step.replica_lanes) : "",
                step.replica_warps ? fmt::format("(warp & {}) == 0", step.replica_warps) : "");
  }
  sweep(step, [&](const std::string& index) {
    std::string text = expression(step, index);
    if (masked && text != "0.0f") text = fmt::format("{} ? {} : 0.0f", mask, atom(text));
    const std::string to = assign(step.out, index);
    line("{}{};", to, text);
  });
}

std::string TileEmitter::padding(const TileAccess& access) const {
  const ElementType type = tensor(access.parameter).type;
  return number(type, decode(type, access.padding));
}

std::string TileEmitter::source(const TileAccess& access, const Spot& at) const {
  return fmt::format("{}_base + ({}), {}{}", access.name, at.offset, at.inside,
                     is_input(access) && access.padding == 0 ? "" : ", " + padding(access));
}

std::string TileEmitter::read_vector(const TileAccess& access, const Spot& at, std::string_view to) const {
  return fmt::format("{}<{}>({}, {});", is_input(access) ? "read_input" : "read_vector", access.vector, to,
                     source(access, at));
}

std::string TileEmitter::read_element(const TileAccess& access, const Spot& at) const {
  if (is_input(access)) return fmt::format("read_input({})", source(access, at));
  return fmt::format("{} ? from_memory({}_base[{}]) : {}", at.inside, access.name, at.offset, padding(access));
}

void TileEmitter::load(const Step& step) {
  const TileAccess& access = *step.access;
  const Value& out = value(step.out);
  declare(step.out, false);
  place(access, false);
  const ElementType type = tensor(access.parameter).type;
  const int count = step.layout.registers();
  if (access.vector > 1) {
    unroll(step.unrolled);
    open("for (int g = 0; g < {}; g += {}) {{", count, access.vector);
    const Spot at = spot(step, access, "g");
    if (out.home == Home::registers) {
      line("{}", read_vector(access, at, out.name + " + g"));
    } else {
      line("{} read[{}];", register_type(type), access.vector);
      line("{}", read_vector(access, at, "read"));
      unroll(true);
      line("for (int r = g; r < g + {}; ++r) {} = read[r - g];", access.vector, element(out, "r"));
    }
    close();
    return;
  }
  const bool one = count == 1;
  if (one) {
    open("{{");
  } else {
    unroll(step.unrolled);
    open("for (int r = 0; r < {}; ++r) {{", count);
  }
  const std::string index = one ? "0" : "r";
  const Spot at = spot(step, access, index);
  line("{} = {};", element(out, index), read_element(access, at));
  close();
}

void TileEmitter::store(const Step& step) {
  const TileAccess& access = *step.access;
  const ElementType type = tensor(access.parameter).type;
  open("{{");
  place(access, true);
  const std::string mine = first_copy(step.layout);
  const auto check = [&](const std::string& text) {
    if (plan_.debug && info(type).kind == ElementKind::real)
      line("if ({0} != {0}) debug_fail(\"NaN is stored\", {1});", text, step.location.line);
  };
  if (access.vector > 1) {
    const auto element = [&](const std::string& index) {
      const std::string text = expression(step, index);
      line("out[r - g] = {};", text);
      check("out[r - g]");
    };
    const auto begin = [&](const std::string&) { line("{} out[{}];", register_type(type), access.vector); };
    const auto end = [&](const std::string& index) {
      const Spot at = spot(step, access, index);
      line("if ({}) store_vector<{}>({}_base + ({}), out);", both(mine, at.inside), access.vector, access.name,
           at.offset);
    };
    sweep(step, element, begin, end);
  } else {
    sweep(step, [&](const std::string& index) {
      const Spot at = spot(step, access, index);
      const std::string text = expression(step, index);
      if (step.kind == Step::Kind::atomic)
        line("if ({}) atomic_add({}_base + ({}), {});", both(mine, at.inside), access.name, at.offset, text);
      else if (step.kind == Step::Kind::scatter)
        line("if ({}) scatter_element({}_base + ({}), to_memory<{}>({}));", both(mine, at.inside), access.name,
             at.offset, memory_type(type), text);
      else
        line("if ({}) {}_base[{}] = to_memory<{}>({});", both(mine, at.inside), access.name, at.offset,
             memory_type(type), text);
    });
  }
  close();
}

}  // namespace tessera
