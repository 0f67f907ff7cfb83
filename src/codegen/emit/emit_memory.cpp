#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/spelling.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::codegen {

void emit(Writer& w, const Load& load) {
  const TileAccess& access = load.access;
  const int count = load.sweep.layout.registers();
  declare(w, load.out, true);
  // One element has no use for names; its bounds check and its address are in the access.
  place(w, access, false, count == 1 && access.read_only && !access.rows && !access.by_elements() && !w.plan.debug);
  if (access.vector > 1) {
    const IndexExpression group = IndexExpression::variable("g", count);
    w.unroll(load.sweep);
    w.open("for (int g = 0; g < {}; g += {}) {{", count, access.vector);
    const Spot at = spot(w, load.sweep, access, group);
    if (w.plan.storage(load.out).storage_class == StorageClass::registers) {
      w.line("{}", read_vector(w, access, at, w.name(load.out) + " + g"));
    } else {
      w.line("{} read[{}];", register_type(w.tensor(access.parameter).type), access.vector);
      w.line("{}", read_vector(w, access, at, "read"));
      w.unroll(true);
      w.line("for (int r = g; r < g + {}; ++r) {} = read[r - g];", access.vector,
             element(w, load.out, IndexExpression::variable("r", count)));
    }
    w.close();
    return;
  }
  const IndexExpression index = count == 1 ? IndexExpression(0) : IndexExpression::variable("r", count);
  if (count > 1) {
    w.unroll(load.sweep);
    w.open("for (int r = 0; r < {}; ++r) {{", count);
  }
  const Spot at = spot(w, load.sweep, access, index);
  w.line("{}{};", assign(w, load.out, index), read_element(w, access, at));
  if (count > 1) w.close();
}

namespace {

// Collects the pair in `out` with the others of its row, which come from four instructions; stores both rows when they
// are complete.
void store_quads(Writer& w, const Store& store) {
  const TileAccess& access = store.access;
  const std::string_view type = memory_type(w.tensor(access.parameter).type);
  w.line("pairs[g / 2 % 2][g / 4 % 4] = pair_to_memory({}(), out[0], out[1]);", type);
  w.line("if (g % 16 < 14) continue;");
  w.unroll(true);
  w.open("for (int half = 0; half < 2; ++half) {{");
  w.line("exchange_quads(pairs[half]);");
  w.line("const int first = g / 16 * 16 + half * 2;");
  const IndexExpression first = IndexExpression::variable("first", store.sweep.layout.registers());
  // The exchange gives a lane eight columns of a row instead of its own two of each eight.
  const int last = store.sweep.shape.rank() - 1;
  std::vector<IndexExpression> place;
  for (int axis = 0; axis < last; ++axis) place.push_back(coordinate(w, store.sweep, axis, first));
  place.push_back(coordinate(w, store.sweep, last, first) + w.lane() % 4 * 6);
  const Spot at = spot(w, store.sweep, access, place, first);
  const IndexExpression inside = at.inside;
  if (store.kind == Store::Kind::scatter)
    w.line("{}scatter_words<4>({}, pairs[half]);", guard(inside), address(w, access, at));
  else
    w.line("store_words({}, pairs[half], {});", address(w, access, at), inside);
  w.close();
}

// Collects a group of neighbors in `out` and stores it with one access.
void store_vectors(Writer& w, const Store& store, const IndexExpression& mine) {
  const TileAccess& access = store.access;
  const ElementType type = w.tensor(access.parameter).type;
  const auto each = [&](const IndexExpression& index) {
    const Spelled value = expression(w, store.sweep, index);
    w.line("out[r - g] = {};", value.text);
  };
  const auto begin = [&](const IndexExpression&) { w.line("{} out[{}];", register_type(type), access.vector); };
  if (store.by_quads) {
    w.line("u32 pairs[2][4];");
    return sweep(w, store.sweep, {}, each, begin, [&](const IndexExpression&) { store_quads(w, store); });
  }
  const auto end = [&](const IndexExpression& index) {
    const Spot at = spot(w, store.sweep, access, index);
    const IndexExpression stored = both(mine, at.inside);
    check_numbers(w, type, "out", access.vector, stored);
    if (store.kind == Store::Kind::scatter)
      w.line("{}scatter_vector<{}>({}, out);", guard(stored), access.vector, address(w, access, at));
    else if (store.whole)
      w.line("store_whole<{}>({}, out, {});", access.vector, address(w, access, at), stored);
    else
      w.line("{}store_vector<{}>({}, out);", guard(stored), access.vector, address(w, access, at));
  };
  sweep(w, store.sweep, {}, each, begin, end);
}

}  // namespace

void emit(Writer& w, const Store& store) {
  const TileAccess& access = store.access;
  const std::string name = name_of(access.label);
  const std::string_view type = memory_type(w.tensor(access.parameter).type);
  w.open("{{");
  place(w, access, true);
  const IndexExpression mine = first_copy(w, store.sweep.layout);
  if (access.vector > 1) {
    store_vectors(w, store, mine);
  } else {
    sweep(w, store.sweep, {}, [&](const IndexExpression& index) {
      const Spot at = spot(w, store.sweep, access, index);
      const Spelled value = expression(w, store.sweep, index);
      const IndexExpression stored = both(mine, at.inside);
      const std::string mask = guard(stored);
      check_number(w, w.tensor(access.parameter).type, value.text, stored);
      switch (store.kind) {
        case Store::Kind::scatter:
          return w.line("{}scatter_element({}, to_memory<{}>({}));", mask, address(w, access, at), type, value.text);
        case Store::Kind::store:
          return w.line("{}{}_base[{}] = to_memory<{}>({});", mask, name, at.offset, type, value.text);
      }
    });
  }
  w.close();
}

namespace {

// Axes first to last - 1 of a tile, which are merged into one of its buffer.
struct MergedAxes {
  MergedAxes(const TileAccess& access, std::size_t first, std::size_t last)
      : access(access), outermost(first), last(last) {
    while (outermost + 1 < last && access.axes[outermost].extent == 1) ++outermost;
  }
  // The coordinates of a position of the buffer. Beyond the tile, the outermost one is.
  void spread(const IndexExpression& position, std::vector<IndexExpression>& at) const {
    int below = 1;
    for (std::size_t i = last; i-- > outermost;) {
      at[i] = i == outermost ? position / below : position / below % access.axes[i].extent;
      below *= access.axes[i].extent;
    }
  }

  // From a position below `step`, are whole steps a distance apart that does not depend on it? They are if no axis ends
  // within a step.
  bool ends_with_steps(int step) const {
    int below = 1;
    for (std::size_t i = last; i-- > outermost; below *= access.axes[i].extent)
      if (step % below != 0 && below % step != 0) return false;
    return true;
  }
  // The distance of `count` steps, in elements of the tensor.
  IndexExpression distance(const Writer& w, const IndexExpression& count, int step) const {
    IndexExpression distance = 0;
    int below = 1;
    for (std::size_t i = last; i-- > outermost; below *= access.axes[i].extent) {
      const int extent = access.axes[i].extent;
      if (i > outermost && step % (below * extent) == 0) continue;
      const IndexExpression stride = stride_of(w, access, i);
      distance = distance + (i > outermost       ? count * step / below % extent * stride
                             : step % below == 0 ? count * (stride * (step / below))
                                                 : count * step / below * stride);
    }
    return distance;
  }
  bool is_one() const { return outermost + 1 == last; }

  const TileAccess& access;
  std::size_t outermost, last;
};

}  // namespace

void emit(Writer& w, const Fetch& fetch) {
  w.uses.thread = true;
  const int threads = w.role.threads();
  for (const Fetch::Tile& tile : fetch.tiles) {
    const TileAccess& access = tile.access;
    const Buffer& to = w.buffer(tile.buffer);
    const ElementType element = w.tensor(access.parameter).type;
    const std::string_view type = memory_type(element);
    const std::string name = name_of(access.label);
    const int per_row = to.columns / access.vector, pieces = to.rows * per_row;
    const int trips = (pieces + threads - 1) / threads;
    const IndexExpression i = trips > 1 ? IndexExpression::variable("i", trips) : 0;
    w.open("{{");
    place(w, access, false);
    w.line("char* const tile = {};", stage_of(w, tile.buffer, to.stages > 1 ? fetch.loop : LoopId()));
    std::vector<IndexExpression> at(access.axes.size(), 0);
    const std::size_t of_rows = access.axes.size() - static_cast<std::size_t>(tile.column_axes);
    const MergedAxes rows(access, 0, of_rows), columns(access, of_rows, access.axes.size());
    const auto spot_in = [&](const char* row) {
      rows.spread(IndexExpression::variable(row, to.rows), at);
      columns.spread(IndexExpression::variable("column", to.columns), at);
      Spot spot = codegen::spot(w, access, at);
      spot.inside = both(spot.inside, w.fetched_if);
      return spot;
    };
    const std::string by = access.vector > 1 ? fmt::format(" * {}", access.vector) : "";
    std::string from, into = fmt::format("tile + element_offset<{}, {}>(row, column)", type, to.chunks());
    // Neighbors in memory are in a column of the tile: consecutive lanes follow the column, and each thread stays in
    // one row.
    const int last = static_cast<int>(access.axes.size()) - 1;
    const bool in_rows = access.fast == last - 1 && tile.column_axes == 1 && rows.is_one() &&
                         tile.copy == Fetch::Copy::async && threads % to.rows == 0 && to.permuted() == 1;
    // If each thread stays in one column, one address and a stride reach all of its pieces.
    const bool in_columns = !in_rows && tile.copy == Fetch::Copy::async && threads % per_row == 0 &&
                            rows.ends_with_steps(threads / per_row);
    if (in_rows) {
      const int step = threads / to.rows;
      w.line("const int row = thread % {0}, first = thread / {0};", to.rows);
      at[at.size() - 2] = IndexExpression::variable("row", to.rows);
      at[at.size() - 1] = IndexExpression::variable("first", to.columns);
      w.line("const {}* const from = {};", type, address(w, access, codegen::spot(w, access, at)));
      from = beyond("from", i * cast_i64(stride_of(w, access, access.axes.size() - 1) * step));
      w.line("char* const into = tile + element_offset<{}, {}>(row, first);", type, to.chunks());
      into = beyond("into", i * (step * info(element).bytes));
    }
    if (in_columns) {
      const int step = threads / per_row;
      w.line("const int first = thread / {0}, column = thread % {0}{1};", per_row, by);
      w.line("const {}* const from = {};", type, address(w, access, spot_in("first")));
      from = beyond("from", rows.distance(w, i, step));
      if (step % 8 == 0 || to.permuted() == 1) {  // the swizzle is the same in all of these rows
        w.line("char* const into = tile + element_offset<{}, {}>(first, column);", type, to.chunks());
        into = beyond("into", i * (step * to.chunks() * 16));
      }
    }
    const bool loop = trips > 1, some = pieces % threads != 0;
    if (loop) {
      w.unroll_by(tile.unrolled);
      w.open("for (int i = 0; i < {}; ++i) {{", trips);
    } else if (some) {
      w.open("if (thread < {}) {{", pieces);
    }
    if (in_rows) {
      w.line("const int column = {};", IndexExpression::variable("first") + i * (threads / to.rows));
      if (loop && some) w.line("if (column >= {}) break;", to.columns);
    } else if (in_columns) {
      w.line("const int row = {};", IndexExpression::variable("first") + i * (threads / per_row));
      if (loop && some) w.line("if (row >= {}) break;", to.rows);
    } else {
      w.line("const int piece = {};", i * threads + IndexExpression::variable("thread"));
      if (loop && some) w.line("if (piece >= {}) break;", pieces);
      w.line("const int row = piece / {0}, column = piece % {0}{1};", per_row, by);
    }
    const Spot spot = spot_in("row");
    switch (tile.copy) {
      case Fetch::Copy::async:
        w.line("copy_async<{}>({}, {}, {});", access.vector * info(element).bytes, into,
               in_rows || in_columns ? from : address(w, access, spot), spot.inside);
        break;
      case Fetch::Copy::element:
        w.line("*reinterpret_cast<{0}*>(tile + element_offset<{0}, {1}>(row, column)) = {2};", type, to.chunks(),
               where(spot.inside, fmt::format("{}_base[{}]", name, spot.offset), fmt::format("{}{{}}", type)));
        break;
      case Fetch::Copy::vector:
        w.line("#pragma unroll");
        w.line("for (int e = 0; e < {}; ++e)", access.vector);
        w.line("  reinterpret_cast<{0}*>(tile + element_offset<{0}, {1}>(row, column))[e] = {2};", type, to.chunks(),
               where(spot.inside, fmt::format("{}_base[{} + e]", name, spot.offset), fmt::format("{}{{}}", type)));
        break;
    }
    if (loop || some) w.close();
    w.close();
  }
}

namespace {

// The layout of the sweep's tile as a matrix, as which the buffer has it.
Layout layout_in_buffer(const StoreShared& stage) {
  return stage.sweep.layout.reshaped(stage.sweep.shape, matrix_shape(stage.sweep.shape)).value();
}

// Address of an element of the sweep in the buffer.
std::string staged_at(Writer& w, const StoreShared& stage, const IndexExpression& index) {
  const Buffer& to = w.buffer(stage.buffer);
  const Layout layout = layout_in_buffer(stage);
  const IndexExpression column = coordinate(w, layout, 1, index), row = coordinate(w, layout, 0, index);
  const bool panels = to.form == SharedForm::panels;
  return fmt::format("reinterpret_cast<{0}*>({1} + {2}_offset<{0}, {3}>({4}, {5}))", memory_type(to.type),
                     name_of(w.plan, stage.buffer), panels ? "panels" : "element", panels ? to.rows : to.chunks(), row,
                     column);
}

// In a pipeline stage: the offset of a thread's first element, and of the others relative to it. Registers differ in
// other bits of the row than threads do, so their part of the swizzle is separate and the same for all threads.
void declare_first(Writer& w, const StoreShared& stage) {
  const Buffer& to = w.buffer(stage.buffer);
  const Layout layout = layout_in_buffer(stage);
  const IndexExpression column = coordinate(w, layout, 1, 0), row = coordinate(w, layout, 0, 0);
  w.line("const int first = panels_offset<{}, {}>({}, {});", memory_type(to.type), to.rows, row, column);
}
std::string from_first(Writer& w, const StoreShared& stage, const IndexExpression& index) {
  const Buffer& to = w.buffer(stage.buffer);
  const Layout layout = layout_in_buffer(stage);
  const IndexExpression row = digits(layout.register_digits(0), index),
                        column = digits(layout.register_digits(1), index);
  const std::string permuted =
      fmt::format("{} + (first ^ {})", stage_at(w, stage.buffer, stage.state), grouped(row % 8 * 16));
  return fmt::format("reinterpret_cast<{}*>({})", memory_type(to.type),
                     beyond(permuted, row * 128 + column / to.panel_columns() * to.panel_bytes()));
}

// The row, of a warp's 16, whose address a lane passes to stmatrix: lanes 4 g hold row g of a matrix.
IndexExpression row_of_matrices(Writer& w, const Layout& layout) {
  IndexExpression row = w.lane() / 8 % 2 * 8;
  for (const auto& [factor, scale] : layout.thread_digits(0)) {
    if (factor.place != Place::lane) continue;
    if (factor.size == 8) return w.lane() % 16;
    row = row + w.lane() / (factor.unit / 4) % factor.size * scale;
  }
  return row;
}

// stmatrix of four 8x8 matrices, two by two; each lane passes the address of a row of one of them. Warps are along the
// rows of accumulators.
void store_matrices(Writer& w, const StoreShared& stage, const IndexExpression& index) {
  const Buffer& to = w.buffer(stage.buffer);
  const bool transposed = stage.by == StoreShared::By::matrix_transposed;
  const Layout layout = layout_in_buffer(stage);
  const auto of_registers = [&](int axis) { return digits(layout.register_digits(axis), index); };
  const int of_group = (transposed ? to.columns : to.rows) / (w.role.warps / 4);
  const IndexExpression of_warp = w.warp() / 4 * of_group + w.warp() % 4 * 16;
  // The lane's row and column at this register.
  const IndexExpression row = transposed ? of_registers(0) + w.lane() / 16 * 8 + w.lane() % 8
                                         : of_registers(0) + of_warp + row_of_matrices(w, layout),
                        column = transposed ? of_registers(1) + of_warp + w.lane() / 8 % 2 * 8
                                            : of_registers(1) + w.lane() / 16 * 8;
  const std::string_view type = name(to.type);
  w.line(
      "store_matrix{0}({1} + panels_offset<{2}, {3}>({4}, {5}), pack_{2}(staged[0], staged[1]), pack_{2}(staged[2], "
      "staged[3]),",
      transposed ? "_transposed" : "", name_of(w.plan, stage.buffer), type, to.rows, row, column);
  w.line("             pack_{0}(staged[4], staged[5]), pack_{0}(staged[6], staged[7]));", type);
}

}  // namespace

void emit(Writer& w, const StoreShared& stage) {
  const Buffer& to = w.buffer(stage.buffer);
  const IndexExpression mine = first_copy(w, stage.sweep.layout);
  const auto condition = [&](const IndexExpression& index) {
    return guard(both(mine, inside_tile(w, stage.sweep, index)));
  };
  const int count = stage.sweep.vector;
  const auto begin = [&](const IndexExpression&) { w.line("{} staged[{}];", register_type(to.type), count); };
  const auto each = [&](const IndexExpression& index) {
    w.line("staged[r - g] = {};", expression(w, stage.sweep, index).text);
  };
  switch (stage.by) {
    case StoreShared::By::element:
      return sweep(w, stage.sweep, {}, [&](const IndexExpression& index) {
        const Spelled value = expression(w, stage.sweep, index);
        w.line("{}*{} = to_memory<{}>({});", condition(index), staged_at(w, stage, index), memory_type(to.type),
               value.text);
      });
    case StoreShared::By::vector:
      if (stage.state) {
        w.open("{{");
        declare_first(w, stage);
      }
      sweep(w, stage.sweep, {}, each, begin, [&](const IndexExpression& index) {
        w.line("{}store_vector<{}>({}, staged);", condition(index), count,
               stage.state ? from_first(w, stage, index) : staged_at(w, stage, index));
      });
      if (stage.state) w.close();
      return;
    case StoreShared::By::matrix:
    case StoreShared::By::matrix_transposed:
      return sweep(w, stage.sweep, {}, each, begin,
                   [&](const IndexExpression& index) { store_matrices(w, stage, index); });
  }
}

namespace {

// By ldmatrix: each lane passes the address of 16 bytes of a row. A matrix of a transposed tile gives a lane two
// neighbors from each of two rows: rows that are neighbors, or four apart if a register has one element along k.
void load_matrices(Writer& w, const LoadFragment& read) {
  const Buffer& from = w.buffer(read.buffer);
  const Sweep& sweep = read.sweep;
  const Storage& to = w.plan.storage(read.out);
  const bool packed = to.packed > 1;
  const int rows = sweep.shape[0], blocks = rows / 16 / w.role.warps, panel = static_cast<int>(from.panel_bytes()),
            columns = from.panel_columns(), chunk = 16;
  const int registers = to.registers / blocks;  // elements of a block
  const bool pairs = packed || sweep.layout.run(1) == 2;
  const int step = packed ? 32 : std::min(32, sweep.shape[1]), of_step = registers / (sweep.shape[1] / step);
  w.unrolled("b", blocks, [&](const IndexExpression& b) {
    const IndexExpression row = w.warp() / 4 * (16 * 4 * blocks) + b * 64 + w.warp() % 4 * 16;
    w.unrolled("s", sweep.shape[1] / step, [&](const IndexExpression& s) {
      const IndexExpression k = s * step + sweep.origin[1], out = b * registers + s * of_step;
      if (!read.transposed) {
        w.line("load_matrix_x4({}, left_row<8>({}, {}, {}));", beyond(w.name(read.out), out / 4),
               beyond("panels", k / columns * panel), row, k % columns / chunk);
        return;
      }
      const std::string tile = beyond("panels", row / columns * panel + k * 128);
      const IndexExpression at = row % columns / chunk;
      if (packed) {
        w.line("load_bytes_transposed<8, 1>({}, {}, {});", beyond(w.name(read.out), out / 4), tile, at);
        return;
      }
      const int matrices = step / 8;
      w.line("u32 pairs[{}];", matrices);
      const IndexExpression lane = w.lane() % step,
                            row_of_lane = pairs ? lane : lane / 8 * 8 + lane % 2 * 4 + lane % 8 / 2;
      w.line("load_matrix_x{}_transposed(pairs, {} + swizzled<8>({}, {}));", matrices, tile, row_of_lane, at);
      if (!pairs)
        w.line("load_vector<{}>({}, reinterpret_cast<const {}*>(pairs));", 4 * matrices, beyond(w.name(read.out), out),
               memory_type(from.type));
      else
        w.line("{}<{}, {}>({}, pairs);", read.to_reals ? "unpack_real_pairs" : "unpack_pairs", memory_type(from.type),
               matrices, beyond(w.name(read.out), out));
    });
  });
}

}  // namespace

// Registers and threads differ in separate bits of the coordinates, so each register is at a constant distance from the
// thread's first element, but for an exclusive or.
void emit(Writer& w, const LoadFragment& read) {
  const Buffer& from = w.buffer(read.buffer);
  const Sweep& sweep = read.sweep;
  const int rows = read.transposed ? 1 : 0, columns = 1 - rows, count = sweep.layout.registers();
  const std::string_view type = memory_type(from.type);
  declare(w, read.out, false);
  w.open("{{");
  w.line("const char* const panels = {};", stage_at(w, read.buffer, read.state));
  if (read.by_matrix) {
    load_matrices(w, read);
    return w.close();
  }
  const IndexExpression column = coordinate(w, sweep.layout, columns, 0), row = coordinate(w, sweep.layout, rows, 0);
  w.line("const int first = panels_offset<{}, {}>({}, {});", type, from.rows, row, column);
  const int vector = sweep.layout.run(columns);
  const auto further = [&](int axis) {
    std::vector<Digit> of_groups = sweep.layout.register_digits(axis);
    std::erase_if(of_groups, [&](const Digit& digit) { return digit.unit < vector; });
    return digits(of_groups, IndexExpression::variable("g", count)) + sweep.origin[static_cast<std::size_t>(axis)];
  };
  w.unroll(true);
  w.open("for (int g = 0; g < {}; g += {}) {{", count, vector);
  w.line("{}<{}>({} + g, panels_element<{}, {}>(panels, first, {}, {}));", read.to_reals ? "load_reals" : "load_vector",
         vector, w.name(read.out), type, from.rows, further(rows), further(columns));
  w.close();
  w.close();
}

void emit(Writer& w, const ZeroFill& clear) {
  const Buffer& buffer = w.buffer(clear.buffer);
  w.line("clear_tile<{}>({}, {});", threads_from_first(w), name_of(w.plan, clear.buffer), buffer.stage_bytes() / 16);
}

std::string stage_of(Writer& w, BufferId id, LoopId loop) {
  const Buffer& buffer = w.buffer(id);
  IndexExpression tile = IndexExpression::variable(name_of(w.plan, id));
  if (loop) tile = tile + IndexExpression::variable(name_of(w.plan, loop)) % buffer.stages * stage_bytes(w.plan, id);
  return tile.text();
}

int threads_from_first(const Writer& w) {
  if (w.role.first_warp != 0)
    throw InternalError("role '" + w.role.name + "' runs a step that only the CTA's first warps can run");
  return w.role.threads();
}

}  // namespace tessera::internal::codegen
