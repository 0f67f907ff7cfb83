#include "codegen/emit_products.hpp"

namespace tessera {
namespace {

std::string converted(const ProductOperand& operand, std::string text) {
  for (ElementType type : operand.casts)
    if (type != ElementType::f32 && type != operand.stored) text = fmt::format("cast_{}({})", name(type), text);
  return text;
}

// Digits of a register of `from` along its axis that make a register of `to` along the axis that is the same.
void match(const Layout& from, int from_axis, const Layout& to, int to_axis, std::vector<Digit>& map) {
  for (const Digit& f : from.register_digits(from_axis))
    for (const Digit& t : to.register_digits(to_axis))
      if (t.scale <= f.scale && f.scale < t.scale * t.size)
        map.push_back({f.unit, f.size, t.unit * (f.scale / t.scale)});
}

int row_unit(const Layout& layout) {
  const auto rows = layout.register_digits(0);
  return rows.empty() ? 0 : rows[0].unit;
}

}  // namespace

const Buffer& ProductEmitter::buffer(int id) {
  const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(id)];
  mention(buffer.name);
  if (!buffer.in_workspace) use("shared");
  return buffer;
}

void ProductEmitter::stage(const Step& step) {
  const Buffer& to = buffer(step.buffer);
  const std::string_view type = memory_type(to.type);
  const std::string mine = first_copy(step.layout);
  sweep(step, [&](const std::string& index) {
    const std::string text = expression(step, index);
    const std::string condition = both(mine, inside_tile(step, index));
    line("{0}*reinterpret_cast<{1}*>({2} + element_offset<{1}, {3}>({4}, {5})) = to_memory<{1}>({6});",
         condition.empty() ? "" : fmt::format("if ({}) ", condition), type, to.name, to.chunks(),
         coordinate(step.layout, 0, index), coordinate(step.layout, 1, index), text);
  });
}

void ProductEmitter::fetch(const Step& step) {
  use("thread");
  for (std::size_t i = 0; i < step.tiles.size(); ++i) {
    const TileAccess& access = step.tiles[i];
    const Buffer& to = buffer(step.buffers[i]);
    const std::string_view type = memory_type(tensor(access.parameter).type);
    const int bytes = access.vector * info(tensor(access.parameter).type).bytes;
    const int per_row = to.columns / access.vector, pieces = to.rows * per_row;
    open("{{");
    place(access, false);
    std::string tile = to.name;
    if (to.stages > 1) tile = fmt::format("{} + {} % {} * {}", to.name, step.counter, to.stages, to.stage_bytes());
    line("char* const tile = {};", tile);
    const int rounds = (pieces + plan_.threads() - 1) / plan_.threads();
    // Copies that are not asynchronous hold registers until they arrive.
    const bool async = bytes >= 4 && !to.in_workspace;
    line("#pragma unroll{}", !async || access.vector == 1 ? " 2" : rounds <= 16 ? "" : " 4");
    open("for (int i = 0; i < {}; ++i) {{", rounds);
    line("const int piece = i * {} + thread;", plan_.threads());
    if (pieces % plan_.threads()) line("if (piece >= {}) break;", pieces);
    line("const int row = piece / {}, column = piece % {}{};", per_row, per_row,
         access.vector > 1 ? fmt::format(" * {}", access.vector) : "");
    std::vector<std::string> at(access.axes.size(), "0");
    at[at.size() - 2] = "row";
    at[at.size() - 1] = "column";
    const Spot spot = checked(access, this->spot(access, at, ""));
    if (async)
      line("copy_async<{0}>(tile + element_offset<{1}, {2}>(row, column), {3}_base + ({4}), {5});", bytes, type,
           to.chunks(), access.name, spot.offset, spot.inside);
    else if (access.vector == 1)
      line("*reinterpret_cast<{0}*>(tile + element_offset<{0}, {1}>(row, column)) = {2} ? {3}_base[{4}] : {0}{{}};",
           type, to.chunks(), spot.inside, access.name, spot.offset);
    else {
      line("#pragma unroll");
      line("for (int e = 0; e < {}; ++e)", access.vector);
      line(
          "  reinterpret_cast<{0}*>(tile + element_offset<{0}, {1}>(row, column))[e] = {2} ? {3}_base[{4} + e] : "
          "{0}{{}};",
          type, to.chunks(), spot.inside, access.name, spot.offset);
    }
    close();
    close();
  }
}

std::string ProductEmitter::tile_of(const ProductOperand& operand) {
  const Buffer& from = buffer(operand.buffer);
  if (operand.stage.empty()) return from.name;
  return fmt::format("{} + {} % {} * {}", from.name, operand.stage, from.stages, from.stage_bytes());
}

void ProductEmitter::product(const Step& step) {
  switch (step.product->kind) {
    case ProductKind::tensor:
      return step.product->type == ElementType::tf32 ? tf32_product(step) : matrix_product(step);
    case ProductKind::block:
      return block_product(step);
    case ProductKind::thin:
      return thin_product(step);
  }
}

ProductEmitter::Tiles ProductEmitter::tiles(const Step& step) const {
  return {step.layout.cover(0) / (16 * step.product->warps_m), step.layout.cover(1) / (8 * step.product->warps_n)};
}

std::string ProductEmitter::warp_row(const Product& product, int rows) {
  if (product.warps_m == 1) return "0";
  use("warp");
  return fmt::format("warp / {} * {}", product.warps_n, rows);
}

std::string ProductEmitter::warp_column(const Product& product, int columns) {
  if (product.warps_n == 1) return "0";
  use("warp");
  return fmt::format("warp % {} * {}", product.warps_n, columns);
}

void ProductEmitter::rounds_of_k(const Product& product, int rounds) {
  line("#pragma unroll{}", product.a.value >= 0 ? "" : " 2");
  open("for (int k = 0; k < {}; ++k) {{", rounds);
}

void ProductEmitter::over_accumulators(const Step& step, Tiles t, const Each& each) {
  const Value& out = value(step.out);
  unroll(true);
  open("for (int i = 0; i < {}; ++i) {{", t.m);
  unroll(true);
  open("for (int j = 0; j < {}; ++j) {{", t.n);
  const std::string at = fmt::format("(i * {} + j) * 4", t.n);
  if (out.home == Home::registers || out.home == Home::variable) {
    each(fmt::format("{} + {}", out.name, at));
  } else {
    line("float c[4];");
    line("for (int e = 0; e < 4; ++e) c[e] = {};", element(out, fmt::format("({} + e)", at)));
    each("c");
    line("for (int e = 0; e < 4; ++e) {} = c[e];", element(out, fmt::format("({} + e)", at)));
  }
  close();
  close();
}

void ProductEmitter::matrix_product(const Step& step) {
  const Product& p = *step.product;
  const Tiles t = tiles(step);
  const std::string_view type = name(p.type);
  const int rounds = (p.k + 15) / 16;
  mention(value(step.out).name);
  open("{{");
  if (p.a.buffer >= 0) line("const char* const left = {};", tile_of(p.a));
  line("const char* const right = {};", tile_of(p.b));
  if (p.a.buffer >= 0) line("const int row = {};", warp_row(p, t.m * 16));
  line("const int column = {};", warp_column(p, t.n * 8));
  rounds_of_k(p, rounds);
  line("u32 a[{}][4], b[{}][2];", t.m, t.n);
  unroll(true);
  open("for (int i = 0; i < {}; ++i) {{", t.m);
  if (p.a.value >= 0) {
    // The accumulators of a score are, two by two, the left operand's registers.
    const Value& from = value(p.a.value);
    mention(from.name);
    for (int e = 0; e < 4; ++e)
      line("a[i][{0}] = pack_{1}({2}[(i * {3} + 2 * k) * 4 + {4}], {2}[(i * {3} + 2 * k) * 4 + {5}]);", e, type,
           from.name, 2 * rounds, 2 * e, 2 * e + 1);
  } else {
    const int chunks = buffer(p.a.buffer).chunks();
    if (p.a.k_major)
      line("left_fragment<{}>(a[i], left, row + i * 16, k * 2);", chunks);
    else
      line("left_fragment_turned<{}>(a[i], left, k * 16, row / 8 + i * 2);", chunks);
  }
  close();
  const int chunks = buffer(p.b.buffer).chunks();
  if (t.n > 1) {
    unroll(true);
    open("for (int j = 0; j + 1 < {}; j += 2) {{", t.n);
    if (p.b.k_major)
      line("right_fragments<{}>(b[j], right, column + j * 8, k * 2);", chunks);
    else
      line("right_fragments_turned<{}>(b[j], right, k * 16, column / 8 + j);", chunks);
    close();
  }
  if (t.n % 2) {
    if (p.b.k_major)
      line("right_fragment<{}>(b[{}], right, column + {}, k * 2);", chunks, t.n - 1, (t.n - 1) * 8);
    else
      line("right_fragment_turned<{}>(b[{}], right, k * 16, column / 8 + {});", chunks, t.n - 1, t.n - 1);
  }
  over_accumulators(step, t, [&](const std::string& c) { line("mma_{}({}, a[i], b[j]);", type, c); });
  close();
  close();
}

void ProductEmitter::tf32_product(const Step& step) {
  const Product& p = *step.product;
  const Tiles t = tiles(step);
  const int rounds = (p.k + 7) / 8;
  mention(value(step.out).name);
  use("lane");
  open("{{");
  if (p.a.buffer >= 0) line("const char* const left = {};", tile_of(p.a));
  line("const char* const right = {};", tile_of(p.b));
  if (p.a.buffer >= 0) line("const int row = {} + lane / 4;", warp_row(p, t.m * 16));
  line("const int column = {} + lane / 4;", warp_column(p, t.n * 8));
  rounds_of_k(p, rounds);
  line("const int at = k * 8 + lane % 4 * 2;");
  line("u32 a[{}][4], b[{}][2];", t.m, t.n);
  unroll(true);
  open("for (int i = 0; i < {}; ++i) {{", t.m);
  if (p.a.value >= 0) {
    const Value& from = value(p.a.value);
    mention(from.name);
    for (int e = 0; e < 4; ++e) {
      const int at = e % 2 * 2 + e / 2;
      line("a[i][{}] = bits_of({}[(i * {} + k) * 4 + {}]);", e, from.name, rounds, at);
    }
  } else {
    for (int half = 0; half < 2; ++half) {
      line("float x{}[2];", half);
      pair(p.a, "left", fmt::format("x{}", half), fmt::format("row + i * 16 + {}", half * 8));
      for (int e = 0; e < 2; ++e)
        line("a[i][{}] = bits_of({});", half + 2 * e, converted(p.a, fmt::format("x{}[{}]", half, e)));
    }
  }
  close();
  unroll(true);
  open("for (int j = 0; j < {}; ++j) {{", t.n);
  line("float x[2];");
  pair(p.b, "right", "x", "column + j * 8");
  for (int e = 0; e < 2; ++e) line("b[j][{}] = bits_of({});", e, converted(p.b, fmt::format("x[{}]", e)));
  close();
  over_accumulators(step, t, [&](const std::string& c) { line("mma_tf32({}, a[i], b[j]);", c); });
  close();
  close();
}

void ProductEmitter::pair(const ProductOperand& operand, std::string_view tile, const std::string& out,
                          const std::string& other) {
  const Buffer& from = buffer(operand.buffer);
  const std::string_view type = memory_type(from.type);
  if (operand.k_major) {
    line("read_tile<2, {}, {}>({}, {}, {}, at);", type, from.chunks(), out, tile, other);
  } else {
    line("read_tile<1, {}, {}>({}, {}, at, {});", type, from.chunks(), out, tile, other);
    line("read_tile<1, {}, {}>({} + 1, {}, at + 1, {});", type, from.chunks(), out, tile, other);
  }
}

void ProductEmitter::block_product(const Step& step) {
  const Product& p = *step.product;
  const Value& out = value(step.out);
  const bool in_registers = out.home == Home::registers || out.home == Home::variable;
  const Layout of_rows = step.layout.without(1), of_columns = step.layout.without(0);
  const int m = of_rows.registers(), n = of_columns.registers();
  const std::vector<Digit> row_map = register_map(of_rows, step.layout),
                           column_map = register_map(of_columns, step.layout);
  mention(out.name);
  open("{{");
  line("const char* const left = {};", tile_of(p.a));
  line("const char* const right = {};", tile_of(p.b));
  line("#pragma unroll {}", p.unrolled);
  open("for (int k = 0; k < {}; k += 4) {{", (p.k + 3) / 4 * 4);
  if (in_registers) {
    line("float a[{}][4], b[{}][4];", m, n);
    fragment(p.a, "left", "a", of_rows, 0, m);
    fragment(p.b, "right", "b", of_columns, 1, n);
    unroll(true);
    open("for (int r = 0; r < {}; ++r) {{", step.layout.registers());
    unroll(true);
    line("for (int e = 0; e < 4; ++e) {0} = fmaf(a[{1}][e], b[{2}][e], {0});", element(out, "r"),
         digits(row_map, "r", step.layout.registers()), digits(column_map, "r", step.layout.registers()));
    close();
  } else {
    open("for (int r = 0; r < {}; ++r) {{", step.layout.registers());
    line("float a[4], b[4], c = {};", element(out, "r"));
    four(p.a, "left", "a", coordinate(step.layout, 0, "r"));
    four(p.b, "right", "b", coordinate(step.layout, 1, "r"));
    unroll(true);
    line("for (int e = 0; e < 4; ++e) c = fmaf({}, {}, c);", converted(p.a, "a[e]"), converted(p.b, "b[e]"));
    line("{} = c;", element(out, "r"));
    close();
  }
  close();
  close();
}

void ProductEmitter::four(const ProductOperand& operand, std::string_view tile, const std::string& out,
                          const std::string& other) {
  const Buffer& from = buffer(operand.buffer);
  const std::string_view type = memory_type(from.type);
  if (operand.k_major)
    line("read_tile<4, {}, {}>({}, {}, {}, k);", type, from.chunks(), out, tile, other);
  else
    for (int e = 0; e < 4; ++e)
      line("read_tile<1, {}, {}>({} + {}, {}, k + {}, {});", type, from.chunks(), out, e, tile, e, other);
}

void ProductEmitter::fragment(const ProductOperand& operand, std::string_view tile, std::string_view out,
                              const Layout& layout, int axis, int count) {
  const Buffer& from = buffer(operand.buffer);
  const std::string_view type = memory_type(from.type);
  const int run = layout.run(axis);
  if (!operand.k_major && run % 4 == 0) {
    unroll(true);
    open("for (int i = 0; i < {}; i += 4) {{", count);
    unroll(true);
    open("for (int e = 0; e < 4; ++e) {{");
    line("float x[4];");
    line("read_tile<4, {}, {}>(x, {}, k + e, {});", type, from.chunks(), tile, coordinate(layout, axis, "i"));
    unroll(true);
    line("for (int j = 0; j < 4; ++j) {}[i + j][e] = {};", out, converted(operand, "x[j]"));
    close();
    close();
    return;
  }
  unroll(true);
  open("for (int i = 0; i < {}; ++i) {{", count);
  four(operand, tile, fmt::format("{}[i]", out), coordinate(layout, axis, "i"));
  if (converted(operand, "x") != "x") {
    unroll(true);
    line("for (int e = 0; e < 4; ++e) {0}[i][e] = {1};", out, converted(operand, fmt::format("{}[i][e]", out)));
  }
  close();
}

void ProductEmitter::thin_product(const Step& step) {
  const Product& p = *step.product;
  const Value &out = value(step.out), &a = value(p.a.value), &b = value(p.b.value);
  const int count = p.layout_b.registers();
  const bool unrolled =
      a.home != Home::workspace && a.home != Home::shared && b.home != Home::workspace && b.home != Home::shared;
  unroll(unrolled);
  open("for (int r = 0; r < {}; ++r) {{", count);
  std::vector<Digit> to_a, to_out;
  match(p.layout_b, 0, a.layout, 1, to_a);
  match(p.layout_b, 1, out.layout, 1, to_out);
  const bool padded = p.layout_b.cover(0) > p.k;
  if (padded) open("if ({} < {}) {{", coordinate(p.layout_b, 0, count == 1 ? "0" : "r"), p.k);
  const int a_unit = row_unit(a.layout), out_unit = row_unit(out.layout);
  for (int row = 0; row < p.m; ++row) {
    const auto at = [&](const std::vector<Digit>& map, int unit) {
      const std::string text = digits(map, "r", count);
      return row == 0 ? text : text == "0" ? fmt::format("{}", row * unit) : fmt::format("{} + {}", text, row * unit);
    };
    const std::string to = element(out, at(to_out, out_unit));
    line("{0} = fmaf({1}, {2}, {0});", to, element(a, at(to_a, a_unit)), element(b, "r"));
  }
  if (padded) close();
  close();
}

void ProductEmitter::clear(const Step& step) {
  const Buffer& buffer = this->buffer(step.buffer);
  line("clear_tile<{}>({}, {});", plan_.threads(), buffer.name, buffer.stage_bytes() / 16);
}

}  // namespace tessera
