#include <algorithm>
#include <optional>

#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/spelling.hpp"

namespace tessera::internal::codegen {
namespace {

std::string converted(const MatmulOperand& operand, std::string text) {
  bool as_stored = true;
  for (ElementType type : operand.casts) {
    if (type == ElementType::f32 || type == ElementType::f64 || (as_stored && type == operand.stored)) continue;
    text = fmt::format("cast_{}({})", name(type), text);
    as_stored = false;
  }
  return text;
}

// The type in which a SIMT matmul or gemv holds operands and accumulators.
std::string_view held(const Matmul& matmul) { return register_type(sum_type(matmul.type)); }

std::string multiply_add(const Matmul& matmul, const std::string& a, const std::string& b, const std::string& c) {
  switch (sum_type(matmul.type)) {
    case ElementType::f64:
      return fmt::format("fma({}, {}, {})", a, b, c);
    case ElementType::i32:
      return fmt::format("wrap_add(wrap_mul({}, {}), {})", a, b, c);
    default:
      return fmt::format("fmaf({}, {}, {})", a, b, c);
  }
}

// Number of neighboring elements of a tile, up to four, that one access loads; they are in one chunk.
int at_once(const Buffer& from) { return std::min(4, 16 / info(from.type).bytes); }

std::string tile_of(Writer& w, const MatmulOperand& operand) { return stage_of(w, operand.buffer, operand.stage); }

// --- mma.sync

// Tiles of one instruction in the accumulators of a warp.
struct Tiles {
  int m, n;
};
Tiles tiles_of(const Mma& mma) {
  return {mma.layout.cover(0) / (16 * mma.matmul.warps_m), mma.layout.cover(1) / (8 * mma.matmul.warps_n)};
}

std::string warp_row(Writer& w, const Matmul& matmul, int rows) {
  if (matmul.warps_m == 1) return "0";
  return (w.warp() / (matmul.warps_n * matmul.slices()) * rows).text();
}

std::string warp_column(Writer& w, const Matmul& matmul, int columns) {
  if (matmul.warps_n == 1) return "0";
  return (w.warp() / matmul.slices() % matmul.warps_n * columns).text();
}

// The k-step of a warp; a single one has no loop.
IndexExpression step(int k_steps) {
  return k_steps == 1 ? IndexExpression(0) : IndexExpression::variable("k", k_steps);
}

// Where a warp's slice of k begins, in k-steps.
void declare_slice(Writer& w, const Matmul& matmul) {
  if (matmul.slices() > 1) w.line("const int slice = {};", w.warp() % matmul.slices() * matmul.k_steps());
}
// The position of that k-step along all of k.
IndexExpression k_step(const Matmul& matmul) {
  const int k_steps = matmul.k_steps(), slices = matmul.slices();
  const IndexExpression k = step(k_steps);
  return slices == 1 ? k : IndexExpression::variable("slice", slices * k_steps) + k;
}

void open_k_steps(Writer& w, const Matmul& matmul) {
  if (matmul.k_steps() == 1) return w.open("{{");
  w.unroll_by(matmul.unrolled);
  w.open("for (int k = 0; k < {}; ++k) {{", matmul.k_steps());
}

// Distance in registers between the four accumulators of one instruction.
int apart(const Matmul& p) { return p.pairs().columns ? 2 : 1; }

// Calls each(c, i, j) for the tiles of a thread, counted by i and j; c is the first accumulator of an instruction. If
// the accumulators are in memory, each instruction's are copied to registers and back.
template <class EachAccumulators>
void over_accumulators(Writer& w, const Mma& mma, Tiles t, const EachAccumulators& each) {
  const int apart_by = apart(mma.matmul);
  const ValueId out = mma.out;
  w.unrolled("i", t.m, [&](const IndexExpression& i) {
    w.unrolled("j", t.n, [&](const IndexExpression& j) {
      const IndexExpression at = (i * t.n + j / apart_by * apart_by) * 4 + j % apart_by;
      if (is_indexed_by_constants(w.plan.storage(out))) return each(beyond(w.name(out), at), i, j);
      const std::string c = element(w, out, at + IndexExpression::variable("e", 4) * apart_by);
      const std::string of_c = apart_by == 1 ? "c[e]" : fmt::format("c[e * {}]", apart_by);
      w.line("{} c[{}];", held(mma.matmul), 4 * apart_by);
      w.line("for (int e = 0; e < 4; ++e) {} = {};", of_c, c);
      each("c", i, j);
      w.line("for (int e = 0; e < 4; ++e) {} = {};", c, of_c);
    });
  });
}

// The instruction's name. For 8-bit types it has the distance between its accumulators.
std::string instruction(const Matmul& p) {
  const std::string_view type = name(p.type);
  return info(p.type).bytes == 1 ? fmt::format("mma_{}<{}>", type, apart(p)) : fmt::format("mma_{}", type);
}

// Loads to[i], each with 16 rows: from a tile, or from accumulators, which are packed in pairs to registers of the left
// operand.
void left_fragments(Writer& w, const Matmul& p, int count, const std::string& to) {
  if (p.a.value) {
    const std::string from = w.name(p.a.value);
    const int k_steps = p.k_steps();
    const IndexExpression k = step(k_steps);
    return w.unrolled("i", count, [&](const IndexExpression& i) {
      const IndexExpression at = (i * (2 * k_steps) + 2 * k) * 4;
      for (int e = 0; e < 4; ++e)
        w.line("{0}[{1}][{2}] = pack_{3}({4}[{5}], {4}[{6}]);", to, i, e, name(p.type), from, at + 2 * e,
               at + (2 * e + 1));
    });
  }
  const int chunks = w.buffer(p.a.buffer).chunks(), rows = 16 * 16 * chunks;  // bytes of 16 rows
  if (p.pairs().rows) {
    w.unrolled("i", count, [&](const IndexExpression& i) {
      w.line("load_bytes_transposed<{}, 1>({}[{}], left + {}, {});", chunks, to, i, k_step(p) * (2 * rows),
             IndexExpression::variable("row") / 16 + i);
    });
  } else if (p.a.k_major) {
    w.line("const char* const at = left_row<{}>(left, row, {});", chunks, k_step(p) * 2);
    w.unrolled("i", count,
               [&](const IndexExpression& i) { w.line("load_matrix_x4({}[{}], {});", to, i, beyond("at", i * rows)); });
  } else {
    w.unrolled("i", count, [&](const IndexExpression& i) {
      w.line("load_matrix_x4_transposed({}[{}], left_row_transposed<{}>(left, {}) + {});", to, i, chunks,
             IndexExpression::variable("row") / 8 + i * 2, k_step(p) * rows);
    });
  }
}

// Loads to[j] for all columns, two instructions at a time.
void right_fragments(Writer& w, const Matmul& p, int count, const std::string& to) {
  const int chunks = w.buffer(p.b.buffer).chunks(), rows = 8 * 16 * chunks;  // bytes of 8 rows
  if (p.pairs().columns) {
    return w.unrolled("j", count / 2, [&](const IndexExpression& j) {
      w.line("load_bytes_transposed<{}, 2>({}[{}], right + {}, {});", chunks, to, j * 2, k_step(p) * (4 * rows),
             IndexExpression::variable("column") / 16 + j);
    });
  }
  if (p.b.k_major) w.line("const char* const from = right_row<{}>(right, column, {});", chunks, k_step(p) * 2);
  const auto read = [&](const IndexExpression& j, int matrices) {
    if (p.b.k_major)
      w.line("load_matrix_x{}({}[{}], {});", matrices, to, j, beyond("from", j * rows));
    else
      w.line("load_matrix_x{}_transposed({}[{}], right_row_transposed<{}>(right, {}) + {});", matrices, to, j, chunks,
             IndexExpression::variable("column") / 8 + j, k_step(p) * (2 * rows));
  };
  if (count > 3) {
    w.unroll(true);
    w.open("for (int j = 0; j + 1 < {}; j += 2) {{", count);
    read(IndexExpression::variable("j", count), 4);
    w.close();
  } else if (count > 1) {
    read(0, 4);
  }
  if (count % 2) read(count - 1, 2);
}

// Two sets of fragments: of the current k-step, and of the next, which is loaded ahead.
void declare_fragments(Writer& w, Tiles t, std::string_view start) {
  w.line("u32 a[2][{0}][4]{2}, b[2][{1}][2]{2};", t.m, t.n, start);
}

void multiply_fragments(Writer& w, const Mma& mma, Tiles t, std::string_view set) {
  over_accumulators(w, mma, t, [&](const std::string& c, const IndexExpression& i, const IndexExpression& j) {
    w.line("{0}({1}, a[{2}][{3}], b[{2}][{4}]);", instruction(mma.matmul), c, set, i, j);
  });
}

// All k-steps; each loads the fragments of the next. The fetch follows the first loads. If the last fragments are held,
// the first k-step multiplies those of the previous iteration of the loop.
void k_steps_ahead(Writer& w, const Mma& mma, Tiles t, int k_steps) {
  const Matmul& p = mma.matmul;
  const bool holds = mma.holds_last;
  if (!holds) declare_fragments(w, t, "");
  w.unroll(true);
  w.open("for (int k = 0; k {} {}; ++k) {{", holds ? "<" : "<=", k_steps);
  if (!holds) w.open("if (k < {}) {{", k_steps);
  left_fragments(w, p, t.m, "a[k % 2]");
  right_fragments(w, p, t.n, "b[k % 2]");
  if (!holds) {
    w.close();
    w.line("if (k == 0) continue;");
  }
  if (mma.fetching) {
    w.open("if (k == 1) {{");
    emit_fetch_ahead(w, *w.fetching);
    w.close();
  }
  multiply_fragments(w, mma, t, "(k + 1) % 2");
  w.close();
}

void mma_sync_matmul(Writer& w, const Mma& mma) {
  const Matmul& p = mma.matmul;
  const Tiles t = tiles_of(mma);
  const int k_steps = p.k_steps();
  w.open("{{");
  if (p.a.buffer) w.line("const char* const left = {};", tile_of(w, p.a));
  w.line("const char* const right = {};", tile_of(w, p.b));
  if (p.a.buffer) w.line("const int row = {};", warp_row(w, p, t.m * 16));
  w.line("const int column = {};", warp_column(w, p, t.n * 8));
  declare_slice(w, p);
  if (p.reads_ahead) {
    k_steps_ahead(w, mma, t, k_steps);
  } else {
    open_k_steps(w, p);
    w.line("u32 a[{}][4], b[{}][2];", t.m, t.n);
    left_fragments(w, p, t.m, "a");
    right_fragments(w, p, t.n, "b");
    over_accumulators(w, mma, t, [&](const std::string& c, const IndexExpression& i, const IndexExpression& j) {
      w.line("{}({}, a[{}], b[{}]);", instruction(p), c, i, j);
    });
    w.close();
  }
  w.close();
}

// Loads two neighbors along k.
void pair(Writer& w, const MatmulOperand& operand, std::string_view tile, const std::string& out,
          const std::string& other) {
  const Buffer& from = w.buffer(operand.buffer);
  const std::string_view type = memory_type(from.type);
  if (operand.k_major) {
    w.line("read_tile<2, {}, {}>({}, {}, {}, at);", type, from.chunks(), out, tile, other);
  } else {
    w.line("read_tile<1, {}, {}>({}, {}, at, {});", type, from.chunks(), out, tile, other);
    w.line("read_tile<1, {}, {}>({} + 1, {}, at + 1, {});", type, from.chunks(), out, tile, other);
  }
}

void left_fragment_tf32(Writer& w, const Matmul& p, int k_steps, const IndexExpression& i) {
  if (p.a.value) {
    const std::string from = w.name(p.a.value);
    for (int e = 0; e < 4; ++e)
      w.line("a[{}][{}] = bits_of({}[{}]);", i, e, from,
             (i * k_steps + step(k_steps)) * 4 + (e % 2 * 2 + e / 2));
    return;
  }
  for (int half = 0; half < 2; ++half) {
    w.line("float x{}[2];", half);
    pair(w, p.a, "left", fmt::format("x{}", half), (IndexExpression::variable("row") + i * 16 + half * 8).text());
    for (int e = 0; e < 2; ++e)
      w.line("a[{}][{}] = bits_of({});", i, half + 2 * e, converted(p.a, fmt::format("x{}[{}]", half, e)));
  }
}

// k is permuted within an instruction, for both operands alike, so that a lane's two positions are neighbors.
void tf32_matmul(Writer& w, const Mma& mma) {
  const Matmul& p = mma.matmul;
  const Tiles t = tiles_of(mma);
  const int k_steps = p.k_steps();
  w.uses.lane = true;
  w.open("{{");
  if (p.a.buffer) w.line("const char* const left = {};", tile_of(w, p.a));
  w.line("const char* const right = {};", tile_of(w, p.b));
  if (p.a.buffer) w.line("const int row = {} + lane / 4;", warp_row(w, p, t.m * 16));
  w.line("const int column = {} + lane / 4;", warp_column(w, p, t.n * 8));
  declare_slice(w, p);
  open_k_steps(w, p);
  w.line("const int at = {} + lane % 4 * 2;", k_step(p) * 8);
  w.line("u32 a[{}][4], b[{}][2];", t.m, t.n);
  w.unrolled("i", t.m, [&](const IndexExpression& i) { left_fragment_tf32(w, p, k_steps, i); });
  w.unrolled("j", t.n, [&](const IndexExpression& j) {
    w.line("float x[2];");
    pair(w, p.b, "right", "x", (IndexExpression::variable("column") + j * 8).text());
    for (int e = 0; e < 2; ++e) w.line("b[{}][{}] = bits_of({});", j, e, converted(p.b, fmt::format("x[{}]", e)));
  });
  over_accumulators(w, mma, t, [&](const std::string& c, const IndexExpression& i, const IndexExpression& j) {
    w.line("mma_tf32({}, a[{}], b[{}]);", c, i, j);
  });
  w.close();
  w.close();
}

// --- fused multiply-add from shared memory

// Loads four neighbors along k at one position of the other axis.
void four(Writer& w, const MatmulOperand& operand, std::string_view tile, const std::string& out,
          const IndexExpression& other) {
  const Buffer& from = w.buffer(operand.buffer);
  const std::string_view type = memory_type(from.type);
  const int run = at_once(from);
  if (operand.k_major)
    for (int e = 0; e < 4; e += run)
      w.line("read_tile<{}, {}, {}>({}, {}, {}, k{});", run, type, from.chunks(), beyond(out, e), tile, other,
             e ? fmt::format(" + {}", e) : "");
  else
    for (int e = 0; e < 4; ++e)
      w.line("read_tile<1, {}, {}>({} + {}, {}, k + {}, {});", type, from.chunks(), out, e, tile, e, other);
}

// Maps the index of a register of `from` to that of a register of `to`, where both have the same position along an
// axis.
std::vector<Digit> matched(const Layout& from, int from_axis, const Layout& to, int to_axis) {
  std::vector<Digit> map;
  for (const Digit& f : from.register_digits(from_axis))
    for (const Digit& t : to.register_digits(to_axis))
      if (t.scale <= f.scale && f.scale < t.scale * t.size)
        map.push_back({f.unit, f.size, t.unit * (f.scale / t.scale)});
  return map;
}

// The part of an operand that a thread loads; `layout` is the layout along the operand's m or n axis.
struct Fragment {
  const MatmulOperand& operand;
  std::string_view name, tile;
  int axis;
  Layout layout;

  int count() const { return layout.registers(); }
  // Number of neighbors, of a row across k, that one access loads.
  int run(const Buffer& from) const { return !operand.k_major && layout.run(axis) % 4 == 0 ? at_once(from) : 1; }
};

// Byte distances from a thread's first position to its others; empty where the swizzle differs among them.
std::optional<std::vector<Digit>> bytes_apart(const Fragment& f, const Buffer& from) {
  const int bytes = info(from.type).bytes, chunks = from.chunks();
  if (at_once(from) < 4) return std::nullopt;
  const int alike = from.permuted() == 1 ? 1 : f.operand.k_major ? 8 : from.permuted() * 16 / bytes;
  std::vector<Digit> apart;
  for (const Digit& digit : f.layout.register_digits(f.axis)) {
    if (digit.unit < f.run(from)) continue;
    if (digit.scale % alike) return std::nullopt;
    apart.push_back({digit.unit, digit.size, digit.scale * (f.operand.k_major ? chunks * 16 : bytes)});
  }
  return apart;
}

// Loads a fragment: for K-major operands four k-steps, name[position][step]; for others k-step e, name[position].
void read(Writer& w, const Matmul& p, const Fragment& f) {
  const Buffer& from = w.buffer(f.operand.buffer);
  const std::string_view type = memory_type(from.type);
  const int run = f.run(from), vector = f.operand.k_major ? at_once(from) : run;
  const IndexExpression i = IndexExpression::variable("i", f.count());
  const auto element = [&](const IndexExpression& position) {
    return f.operand.k_major ? fmt::format("{}, k", position) : fmt::format("k + e, {}", position);
  };
  w.line("{} {}[{}]{};", held(p), f.name, f.count(), f.operand.k_major ? "[4]" : "");
  const auto apart = bytes_apart(f, from);
  if (apart)
    w.line("const char* const from_{} = {} + element_offset<{}, {}>({});", f.name, f.tile, type, from.chunks(),
           element(coordinate(w, f.layout, f.axis, 0)));
  w.unroll(true);
  w.open("for (int i = 0; i < {}; i += {}) {{", f.count(), run);
  const std::string to = f.operand.k_major ? fmt::format("{}[i]", f.name) : beyond(f.name, i);
  if (apart)
    w.line("load_vector<{}>({}, reinterpret_cast<const {}*>({}));", vector, to, type,
           beyond(fmt::format("from_{}", f.name), digits(*apart, i)));
  else
    for (int e = 0; e < (f.operand.k_major ? 4 : run); e += vector)
      w.line("read_tile<{}, {}, {}>({}, {}, {}{});", vector, type, from.chunks(), beyond(to, e), f.tile,
             element(coordinate(w, f.layout, f.axis, i)), e ? fmt::format(" + {}", e) : "");
  for (int j = 0; j < (f.operand.k_major ? 4 : run) && converted(f.operand, "x") != "x"; ++j) {
    const std::string x =
        f.operand.k_major ? fmt::format("{}[i][{}]", f.name, j) : fmt::format("{}[i + {}]", f.name, j);
    w.line("{} = {};", x, converted(f.operand, x));
  }
  w.close();
}

// One k-step. If two successive FFMAs share a factor, the second does not read it again; the other factor and the
// accumulator are read in the same cycle if their registers are in different banks. So accumulators are visited column
// by column, back and forth. But k-step e of a K-major operand is in registers of one bank; then they are visited row
// by row.
void multiply_add(Writer& w, const Mma& mma, const Fragment& a, const Fragment& b) {
  const Layout& layout = mma.layout;
  const auto line = [&](const IndexExpression& r, const IndexExpression& i, const IndexExpression& j) {
    const std::string sum = element(w, mma.out, r);
    w.line("{} = {};", sum,
           multiply_add(mma.matmul, fmt::format("a[{}]{}", i, a.operand.k_major ? "[e]" : ""),
                        fmt::format("b[{}]{}", j, b.operand.k_major ? "[e]" : ""), sum));
  };
  w.unroll(true);
  if (a.operand.k_major) {
    const int count = layout.registers();
    const IndexExpression r = IndexExpression::variable("r", count);
    w.open("for (int r = 0; r < {}; ++r) {{", count);
    line(r, digits(register_map(a.layout, layout), r), digits(register_map(b.layout, layout), r));
    return w.close();
  }
  const IndexExpression i = IndexExpression::variable("i", a.count()), j = IndexExpression::variable("j", b.count());
  w.open("for (int j = 0; j < {}; ++j) {{", b.count());
  w.unroll(true);
  w.open("for (int to = 0; to < {}; ++to) {{", a.count());
  w.line("const int i = j % 2 ? {} - to : to;", a.count() - 1);
  line(digits(matched(a.layout, 0, layout, 0), i) + digits(matched(b.layout, 1, layout, 1), j), i, j);
  w.close();
  w.close();
}

void simt_matmul(Writer& w, const Mma& mma) {
  const Matmul& p = mma.matmul;
  const Layout& layout = mma.layout;
  w.open("{{");
  w.line("const char* const left = {};", tile_of(w, p.a));
  w.line("const char* const right = {};", tile_of(w, p.b));
  w.unroll_by(p.unrolled);
  w.open("for (int k = 0; k < {}; k += 4) {{", (p.k + 3) / 4 * 4);
  if (is_indexed_by_constants(w.plan.storage(mma.out))) {
    const Fragment a{p.a, "a", "left", 0, layout.without(1)}, b{p.b, "b", "right", 1, layout.without(0)};
    for (const Fragment* fragment : {&a, &b})
      if (fragment->operand.k_major) read(w, p, *fragment);
    w.unroll(true);
    w.open("for (int e = 0; e < 4; ++e) {{");
    for (const Fragment* fragment : {&a, &b})
      if (!fragment->operand.k_major) read(w, p, *fragment);
    multiply_add(w, mma, a, b);
    w.close();
  } else {
    const int count = layout.registers();
    const IndexExpression r = IndexExpression::variable("r", count);
    const std::string c = element(w, mma.out, r);
    w.open("for (int r = 0; r < {}; ++r) {{", count);
    w.line("{} a[4], b[4], c = {};", held(p), c);
    four(w, p.a, "left", "a", coordinate(w, layout, 0, r));
    four(w, p.b, "right", "b", coordinate(w, layout, 1, r));
    w.unroll(true);
    w.line("for (int e = 0; e < 4; ++e) c = {};", multiply_add(p, converted(p.a, "a[e]"), converted(p.b, "b[e]"), "c"));
    w.line("{} = c;", c);
    w.close();
  }
  w.close();
  w.close();
}

// --- gemv: operands in registers; a thread accumulates its elements along k

int row_unit(const Layout& layout) {
  const auto rows = layout.register_digits(0);
  return rows.empty() ? 0 : rows[0].unit;
}

void gemv_matmul(Writer& w, const Mma& mma) {
  const Matmul& p = mma.matmul;
  const ValueId out = mma.out, a = p.a.value, b = p.b.value;
  const Layout &of_out = w.plan.values[out].layout, &of_a = w.plan.values[a].layout;
  const int count = p.layout_b.registers();
  const IndexExpression r = IndexExpression::variable("r", count);
  w.unroll(is_indexed_by_constants(w.plan.storage(a)) && is_indexed_by_constants(w.plan.storage(b)));
  w.open("for (int r = 0; r < {}; ++r) {{", count);
  const bool padded = p.layout_b.cover(0) > p.k;
  if (padded) w.open("if ({} < {}) {{", coordinate(w, p.layout_b, 0, r), p.k);
  const IndexExpression in_a = digits(matched(p.layout_b, 0, of_a, 1), r),
                        in_out = digits(matched(p.layout_b, 1, of_out, 1), r);
  for (int row = 0; row < p.m; ++row) {
    const std::string to = element(w, out, in_out + row * row_unit(of_out));
    w.line("{} = {};", to, multiply_add(p, element(w, a, in_a + row * row_unit(of_a)), element(w, b, r), to));
  }
  if (padded) w.close();
  w.close();
}

}  // namespace

void begin_fetching(Writer& w, const Mma& mma) {
  if (mma.holds_last) declare_fragments(w, tiles_of(mma), " = {}");
}

void end_fetching(Writer& w, const Mma& mma) {
  if (mma.holds_last) multiply_fragments(w, mma, tiles_of(mma), "1");
}

void emit(Writer& w, const Mma& mma) {
  switch (mma.matmul.kind) {
    case MatmulKind::mma_sync:
      return mma.matmul.type == ElementType::tf32 ? tf32_matmul(w, mma) : mma_sync_matmul(w, mma);
    case MatmulKind::simt:
      return simt_matmul(w, mma);
    case MatmulKind::gemv:
      return gemv_matmul(w, mma);
  }
}

}  // namespace tessera::internal::codegen
