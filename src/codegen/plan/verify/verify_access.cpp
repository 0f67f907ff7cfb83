// Tensor accesses, and matmuls with their buffers.
#include <array>
#include <bit>
#include <set>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {
namespace {

class Accesses {
 public:
  explicit Accesses(Diagnostics& diagnostics) : diagnostics_(diagnostics), plan_(diagnostics.plan) {}

  void run() {
    for (int i = 0; i < plan_.buffers.size(); ++i) {
      const Buffer& buffer = plan_.buffers[BufferId{i}];
      diagnostics_.require(buffer.rows > 0 && buffer.columns > 0 && buffer.stages > 0 &&
                               buffer.columns * info(buffer.type).bytes % 16 == 0,
                           "{}: {} rows of {} elements do not consist of 16-byte chunks", name_of(plan_, BufferId{i}),
                           buffer.rows, buffer.columns);
    }
    for (const Phase& phase : plan_.phases)
      for (const Role& role : phase.roles) {
        role_ = &role;
        body(role.body);
      }
    diagnostics_.about(nullptr);
  }

 private:
  void body(const Body& steps) {
    for (const Step& step : steps) {
      diagnostics_.about(&step);
      labels(step);
      visit_kind(Overloaded{
                     [&](const Load& s) {
        sweep(s.sweep);
        access(s.access, &s.sweep, false);
      },
                     [&](const Store& s) {
        sweep(s.sweep);
        access(s.access, &s.sweep, true);
        diagnostics_.require(s.kind != Store::Kind::scatter || s.access.rows || s.access.by_elements(),
                             "a scatter has no indices");
        diagnostics_.require(!s.access.by_elements() || s.access.vector == 1, "it moves {} elements at a time",
                             s.access.vector);
        vectors(s.sweep, &s.access);
        if (s.by_quads) quads(s);
      },
                     [&](const Atomic& s) {
        sweep(s.sweep);
        access(s.access, &s.sweep, true);
        diagnostics_.require(s.access.vector == 1, "it updates {} elements at a time", s.access.vector);
        diagnostics_.require(is(s.access.parameter, Access::in_out), "it updates {}, which is not an in-out tensor",
                             tensor_name(plan_, s.access.parameter));
        vectors(s.sweep, &s.access);
      },
                     [&]<OneOf<Compute, Reduce, Argmax, Scan, Sort, Merge, HistogramUpdate, HistogramReduce,
                               StoreScratch, LoadScratch, GatherScratch>
                             T>(const T& s) { sweep(s.sweep); },
                     [&](const StoreShared& s) {
        sweep(s.sweep);
        stage(s);
      },
                     [&](const LoadFragment& s) { read_stage(s); },
                     []<class T>(const T&) {
        static_assert(!requires(T s) { s.sweep; }, "are the accesses of this kind valid?");
      },
                     [&](const Fetch& s) { fetch(s); },
                     [&](const Mma& s) { mma(s); },
                     [&](const Loop& s) { loop(s); },
                 },
                 step.action);
      const Loop* const loop = step.action.as<Loop>();
      if (loop) loops_.push_back(loop);
      each_body(step, [&](const Body& inner) { body(inner); });
      if (loop) loops_.pop_back();
    }
  }

  // Names of accesses are made of labels.
  void labels(const Step& step) {
    std::set<std::string> names;
    each_access(step, [&](const TileAccess& access, const Sweep* sweep) {
      const std::string name = name_of(access.label);
      diagnostics_.require(!sweep || names.insert(name).second, "two accesses have the name {}", name);
    });
  }
  bool is(int parameter, Access access) const {
    return plan_.tensors[static_cast<std::size_t>(parameter)].access == access;
  }

  void sweep(const Sweep& sweep) {
    for (const TileAccess& read : sweep.reads) access(read, &sweep, false);
    vectors(sweep, nullptr);
  }
  // A sweep moves groups of `vector` elements, or single elements; a read may take several accesses for a group.
  void vectors(const Sweep& sweep, const TileAccess* store) {
    const auto check = [&](const TileAccess& access, bool whole) {
      diagnostics_.require(
          access.vector == 1 || access.vector == sweep.vector || (!whole && sweep.vector % access.vector == 0),
          "vectors of {} in a sweep by {}", access.vector, sweep.vector);
    };
    for (const TileAccess& read : sweep.reads) {
      check(read, false);
      const int along = read.fast + sweep.shape.rank() - static_cast<int>(read.axes.size());
      diagnostics_.require(
          read.run == 1 || (read.run == sweep.vector && read.run % read.vector == 0 && read.fast >= 0 && !read.rows &&
                            read.read_only && read.padding == 0 && sweep.layout.run(along) % read.run == 0),
          "runs of {} in a sweep by {}", read.run, sweep.vector);
    }
    if (store) check(*store, true);
  }

  void access(const TileAccess& access, const Sweep* sweep, bool writes) {
    const Parameter& tensor = plan_.tensors[static_cast<std::size_t>(access.parameter)];
    const TensorClass& known = plan_.variant.tensors.at(static_cast<std::size_t>(access.parameter));
    const std::string name = tensor_name(plan_, access.parameter);
    if (tensor.access == Access::scalar) return diagnostics_.require(false, "{} is not a tensor", name);
    diagnostics_.require(access.member.has_value() == (tensor.list > 0),
                         "{} is {} a list, and is accessed as if it were{}", name, tensor.list > 0 ? "in" : "not in",
                         tensor.list > 0 ? " not" : "");
    diagnostics_.require(tensor.access != (writes ? Access::in : Access::out), "{} is {}", name,
                         writes ? "written" : "read");
    diagnostics_.require(access.read_only == (tensor.access == Access::in), "{} is assumed to be {}", name,
                         access.read_only ? "read only" : "written");
    diagnostics_.require(access.in_order || !access.read_only || !plan_.waits_for_previous() || !sweep,
                         "{} may be read before the grid dependency wait, while the previous launch may write it",
                         name);
    diagnostics_.require(!access.in_order || access.read_only, "{} is read in order, but the launch writes it", name);
    diagnostics_.require(!access.kept || (access.in_order && !access.rows && !access.member && access.padding == 0 &&
                                          access.vector * info(tensor.type).bytes == 16),
                         "{} is read with evict_last, but not in order by 16-byte accesses padded with zeros", name);
    unsigned axes = 0;
    for (const TileAccess::Axis& axis : access.axes) {
      diagnostics_.require(axis.element.has_value() == access.by_elements() && !(axis.element && access.rows),
                           "only some axes of {} are addressed by element", name);
      diagnostics_.require(!axis.positive || starts_inside(axis.index), "a tile is assumed to start at 0 or above");
      if (axis.tensor_axis < 0) {
        diagnostics_.require(axis.extent == 1, "a tile of {} elements along no axis", axis.extent);
        continue;
      }
      viewed(axis);
      std::vector<int> of_tensor = axis.viewed.outer;
      of_tensor.push_back(axis.tensor_axis);
      for (const int one : of_tensor) {
        const bool is_one = one >= 0 && one < tensor.rank;
        const bool is_window = !axis.viewed.windows.empty() || axis.viewed.within > 0;
        diagnostics_.require(is_one && (is_window || !(axes >> one & 1)),
                             "axis {} of {} is used twice or does not exist", one, name);
        axes |= is_one ? 1u << one : 0;
      }
      diagnostics_.require(axis.extent >= 1, "a tile of {} elements", axis.extent);
    }
    diagnostics_.require(axes + 1 == 1u << tensor.rank, "not every axis of {} is used", name);
    reach(access, tensor, known, name);
    if (sweep) extents(access, *sweep, writes);
    vector(access, sweep, tensor, known, name);
  }
  // Without index64, offsets are computed in 32 bits. The launch checked the reaches of the graph's tiles, so no tile
  // of the plan may reach further.
  void reach(const TileAccess& access, const Parameter& tensor, const TensorClass& known, const std::string& name) {
    if (plan_.variant.index64) return;
    const auto parameter = static_cast<std::size_t>(access.parameter);
    const TileReach asked = parameter < plan_.reaches.size() ? plan_.reaches[parameter] : TileReach{};
    for (int axis = 0; axis < tensor.rank; ++axis) {
      const std::int64_t reach = access.reach(axis), most = asked[static_cast<std::size_t>(axis)];
      diagnostics_.require(reach <= most, "a tile reaches {} elements along axis {} of {}, but a launch allows {}",
                           reach, axis, name, most);
      diagnostics_.require(axis != known.contiguous_axis || !beyond_narrow(static_cast<std::uint64_t>(reach)),
                           "offsets of {} elements along axis {} of {} are computed in 32 bits", reach, axis, name);
    }
  }
  void viewed(const TileAccess::Axis& axis) {
    diagnostics_.require(axis.viewed.factor >= 1 && axis.viewed.within >= 0, "an axis of windows, {} apart, of {}",
                         axis.viewed.factor, axis.viewed.within);
    for (const auto& [size, step] : axis.viewed.windows)
      diagnostics_.require(size >= 1 && step >= 1, "windows of {}, {} apart", size, step);
    for (const TileAccess::Slice& slice : axis.slices) diagnostics_.require(slice.step != 0, "a slice with step 0");
  }
  bool starts_inside(const Operand& index) const {
    if (index.kind == Operand::Kind::literal) return decode(ElementType::i32, index.literal).i32 >= 0;
    const Known& known = plan_.storage(index.value).known;
    return std::holds_alternative<BlockIndex>(known) || std::holds_alternative<Counter>(known);
  }
  // A read may be broadcast along its first axes.
  void extents(const TileAccess& access, const Sweep& sweep, bool writes) {
    if (access.by_elements()) return;
    const int first = sweep.shape.rank() - static_cast<int>(access.axes.size());
    for (std::size_t i = 0; i < access.axes.size(); ++i) {
      const int axis = first + static_cast<int>(i), extent = access.axes[i].extent, wanted = sweep.shape[axis];
      const bool in_part = sweep.part && sweep.origin[static_cast<std::size_t>(axis)] + wanted <= extent;
      diagnostics_.require(extent == wanted || in_part || (extent == 1 && !writes),
                           "a tile of {} along axis {}, in a sweep over {}", extent, i, to_string(sweep.shape));
    }
  }

  void vector(const TileAccess& access, const Sweep* sweep, const Parameter& tensor, const TensorClass& known,
              const std::string& name) {
    const int rank = static_cast<int>(access.axes.size());
    diagnostics_.require(std::has_single_bit(static_cast<unsigned>(access.vector)), "vectors of {}", access.vector);
    if (access.vector == 1) return;
    if (access.fast < 0 || (access.fast == 0 && access.rows))
      return diagnostics_.require(false, "vectors of {} along no axis", access.vector);
    const TileAccess::Axis& axis = access.axes[static_cast<std::size_t>(access.fast)];
    const int bytes = access.vector * info(tensor.type).bytes;
    diagnostics_.require(axis.tensor_axis == known.contiguous_axis,
                         "vectors along axis {} of {}, whose contiguous axis is {}", axis.tensor_axis, name,
                         int{known.contiguous_axis});
    diagnostics_.require(bytes <= 16 && bytes <= known.alignment, "accesses of {} bytes to {}, which is aligned to {}",
                         bytes, name, int{known.alignment});
    diagnostics_.require(bytes <= known.row_alignment, "vectors along axis {} of {} may reach past its end",
                         axis.tensor_axis, name);
    diagnostics_.require(
        axis.viewed.factor == 1 && axis.viewed.windows.empty() && axis.viewed.within % access.vector == 0,
        "vectors of {} along axis {} of {}, which consists of windows", access.vector, axis.tensor_axis, name);
    for (const TileAccess::Axis& other : access.axes)
      diagnostics_.require(
          &other == &axis || other.tensor_axis != axis.tensor_axis || other.viewed.factor % access.vector == 0,
          "vectors of {} in windows that are {} apart", access.vector, other.viewed.factor);
    diagnostics_.require(axis.slices.empty() && axis.extent % access.vector == 0, "vectors of {} in a tile of {}{}",
                         access.vector, axis.extent, axis.slices.empty() ? "" : ", which a slice shifts");
    if (!sweep) return;
    const int along = access.fast + sweep->shape.rank() - rank;
    diagnostics_.require(along >= 0 && sweep->layout.run(along) % access.vector == 0,
                         "vectors of {}, but a thread has runs of {}", access.vector,
                         along >= 0 ? sweep->layout.run(along) : 0);
  }

  // Each of four lanes stores eight neighbors by one access.
  void quads(const Store& s) {
    const bool pairs = s.access.vector == 2 && s.sweep.unrolled &&
                       info(plan_.tensors[static_cast<std::size_t>(s.access.parameter)].type).bytes == 2;
    diagnostics_.require(pairs && stores_by_quads(s.sweep.layout, s.sweep.shape, role_->warps),
                         "{} is not a layout of pairs of mma.sync accumulators", to_string(s.sweep.layout));
    TileAccess eight = s.access;
    eight.vector = 8;
    const Parameter& tensor = plan_.tensors[static_cast<std::size_t>(s.access.parameter)];
    vector(eight, nullptr, tensor, plan_.variant.tensors.at(static_cast<std::size_t>(s.access.parameter)),
           tensor_name(plan_, s.access.parameter));
  }

  // --- matmuls

  void stage(const StoreShared& s) {
    const Buffer& buffer = plan_.buffers[s.buffer];
    if (s.sweep.shape.rank() < 2) return diagnostics_.require(false, "a buffer must have two axes");
    const Shape matrix = matrix_shape(s.sweep.shape);
    const std::optional<Layout> held = s.sweep.layout.reshaped(s.sweep.shape, matrix);
    diagnostics_.require(matrix[0] <= buffer.rows && matrix[1] <= buffer.columns, "a tile of {} in a buffer of [{},{}]",
                         to_string(s.sweep.shape), buffer.rows, buffer.columns);
    if (!held)
      return diagnostics_.require(false, "{} of {} is not a layout of rows", to_string(s.sweep.layout),
                                  to_string(s.sweep.shape));
    const int bytes = s.sweep.vector * info(buffer.type).bytes;
    diagnostics_.require(s.by != StoreShared::By::vector || (held->run(1) % s.sweep.vector == 0 && bytes <= 16),
                         "vectors of {}, but a thread has runs of {}", s.sweep.vector, held->run(1));
    if (s.state) {
      bool apart = buffer.form == SharedForm::panels && s.by == StoreShared::By::vector;
      int threads = 1;
      for (const auto& [factor, scale] : held->thread_digits(0)) threads *= factor.size;
      for (const Digit& digit : held->register_digits(0)) apart &= digit.scale % threads == 0;
      for (const Digit& digit : held->register_digits(1))
        apart &= digit.unit < s.sweep.vector || digit.scale % buffer.panel_columns() == 0;
      diagnostics_.require(apart, "{}: the swizzle does not split into one for the thread and one for the register",
                           to_string(s.sweep.layout));
    }
    if (s.by != StoreShared::By::matrix && s.by != StoreShared::By::matrix_transposed) return;
    const bool transposed = s.by == StoreShared::By::matrix_transposed;
    constexpr std::array<std::int64_t, 2> transposition{1, 0};
    const Layout accumulators = transposed ? held->permuted(transposition) : *held;
    const Shape shape = transposed ? Shape{matrix[1], matrix[0]} : matrix;
    const auto has = [&](RowOrder order) {
      return accumulators == wgmma_accumulator_layout(shape, role_->warps / 4, order);
    };
    diagnostics_.require(buffer.form == SharedForm::panels && bytes == 16 && s.sweep.vector == 8 &&
                             (has(RowOrder::natural) || (!transposed && has(RowOrder::even_odd))),
                         "{} is not the layout of {}wgmma accumulators", to_string(s.sweep.layout),
                         transposed ? "transposed " : "");
  }

  // Only in the layout of wgmma's left operand is each register known to be at a constant distance from the thread's
  // first.
  void read_stage(const LoadFragment& s) {
    const Buffer& buffer = plan_.buffers[s.buffer];
    const int bytes = info(buffer.type).bytes;
    const int packed = plan_.storage(s.out).packed;
    diagnostics_.require(buffer.form == SharedForm::panels && bytes <= 4, "{} does not consist of panels of {}",
                         name_of(plan_, s.buffer), name(buffer.type));
    diagnostics_.require(s.by_matrix == (bytes == 1 && (s.transposed || packed > 1)), "{} of {} is read {}by ldmatrix",
                         name_of(plan_, s.buffer), name(buffer.type), s.by_matrix ? "" : "not ");
    diagnostics_.require(packed == (s.by_matrix && is_left(s, ElementType::i8) ? 4 : 1),
                         "{} elements are read to a register", packed);
    if (s.sweep.shape.rank() != 2) return diagnostics_.require(false, "a buffer must have two axes");
    diagnostics_.require(
        is_left(s, ElementType::f16) || is_left(s, ElementType::tf32) || (s.by_matrix && is_left(s, ElementType::i8)),
        "{} is not the layout of wgmma's left operand", to_string(s.sweep.layout));
    for (int axis = 0; axis < 2; ++axis) {
      const int end = s.sweep.origin[static_cast<std::size_t>(axis)] + s.sweep.shape[axis];
      const int extent = (axis == 0) != s.transposed ? buffer.rows : buffer.columns;
      diagnostics_.require(end <= extent, "{} of {} along axis {} of {}", end, extent, axis, name_of(plan_, s.buffer));
    }
  }

  // A thread's rows are those that the read gives it: neighbors only if the tile is transposed, as ldmatrix needs them.
  bool is_left(const LoadFragment& s, ElementType type) const {
    return std::ranges::any_of(row_orders, [&](RowOrder order) {
      const bool may = !s.by_matrix || order == (s.transposed ? RowOrder::paired : RowOrder::natural);
      return may && s.sweep.layout == wgmma_operand_layout(s.sweep.shape, std::max(role_->warps / 4, 1), type, order);
    });
  }

  void fetch(const Fetch& s) {
    for (const Fetch::Tile& tile : s.tiles) {
      const Buffer& buffer = plan_.buffers[tile.buffer];
      access(tile.access, nullptr, false);
      diagnostics_.require(tile.access.read_only && !tile.access.rows && tile.access.padding == 0,
                           "a fetch must copy an In tensor, with zeros outside of it");
      diagnostics_.require(tile.copy == Fetch::Copy::async || !plan_.waits_for_previous(),
                           "{} is filled by plain loads in a launch that may begin before the tensor is written",
                           name_of(plan_, tile.buffer));
      box(tile, buffer);
      const std::string name = name_of(plan_, tile.buffer);
      const Parameter& tensor = plan_.tensors[static_cast<std::size_t>(tile.access.parameter)];
      diagnostics_.require(tensor.type == buffer.type, "{} holds {}, but the tensor {}", name,
                           tessera::internal::name(buffer.type), tessera::internal::name(tensor.type));
      diagnostics_.require(buffer.columns % tile.access.vector == 0,
                           "{} has {} columns, which are not whole vectors of {}", name, buffer.columns,
                           tile.access.vector);
      if (plan_.progress >= Progress::synchronized) {
        const int bytes = tile.access.vector * info(tensor.type).bytes;
        diagnostics_.require(tile.copy != Fetch::Copy::async || (bytes >= 4 && !buffer.in_workspace),
                             "{} is copied asynchronously, {} bytes at a time", name, bytes);
      }
      if (!s.loop) {
        diagnostics_.require(buffer.stages == 1, "{} has several stages, but its fetch is for no loop", name);
        continue;
      }
      const Loop* const loop = loops_.empty() ? nullptr : loops_.back();
      diagnostics_.require(loop && loop->loop == s.loop && buffer.stages == loop->stages,
                           "{} has {} stages, which differ from those of the loop", name, buffer.stages);
    }
  }

  void box(const Fetch::Tile& tile, const Buffer& buffer) {
    const TileAccess& access = tile.access;
    const int axes = static_cast<int>(access.axes.size()), of_rows = axes - tile.column_axes;
    if (tile.column_axes < 1 || of_rows < 1) return diagnostics_.require(false, "a buffer must have two axes");
    std::int64_t rows = 1, columns = 1;
    for (int i = 0; i < axes; ++i) (i < of_rows ? rows : columns) *= access.axes[static_cast<std::size_t>(i)].extent;
    diagnostics_.require(rows <= buffer.rows && columns <= buffer.columns,
                         "a tile of [{},{}] where its buffer has [{},{}]", rows, columns, buffer.rows, buffer.columns);
    diagnostics_.require(access.vector == 1 || access.fast + 1 == axes, "vectors of {} across rows", access.vector);
  }

  void loop(const Loop& s) {
    diagnostics_.require(s.stages >= 1, "{} stages", s.stages);
    diagnostics_.require(s.unrolled == 0 || (s.unrolled > 0 && !s.repeats), "{} iterations are unrolled", s.unrolled);
    const bool ahead = !s.arrive.empty() || !s.ahead.empty() || !s.issued.empty();
    diagnostics_.require(ahead == (s.stages > 1), "{} stages are in flight, but {} is fetched ahead", s.stages,
                         ahead ? "something" : "nothing");
  }

  void mma(const Mma& s) {
    const Matmul& p = s.matmul;
    diagnostics_.require(s.shape == Shape{p.m, p.n} && plan_.values[s.out].shape == s.shape && p.k >= 1,
                         "a matmul of [{},{}] in a tile of {}", p.m, p.n, to_string(s.shape));
    diagnostics_.require(info(p.type).multiplies, "matmuls of {}", tessera::internal::name(p.type));
    diagnostics_.require(plan_.storage(s.out).type == sum_type(p.type), "accumulators in {}",
                         tessera::internal::name(plan_.storage(s.out).type));
    diagnostics_.require(plan_.values[s.out].layout == s.layout, "the matmul has layout {}, but {} has {}",
                         to_string(s.layout), name_of(plan_, s.out), to_string(plan_.values[s.out].layout));
    diagnostics_.require(s.layout.cover(0) >= p.m && s.layout.cover(1) >= p.n, "accumulators cover [{},{}] of [{},{}]",
                         s.layout.cover(0), s.layout.cover(1), p.m, p.n);
    diagnostics_.require(p.warps_m >= 1 && p.warps_n >= 1 && p.warps_m * p.warps_n <= role_->warps,
                         "{} x {} warps in a role of {}", p.warps_m, p.warps_n, role_->warps);
    diagnostics_.require(!p.partial || p.lanes_k || p.warps_k, "complete sums are marked as partial");
    const bool unrolled = p.in_stored_order() && p.a.buffer && p.unrolled == 0;
    diagnostics_.require(!p.reads_ahead || unrolled, "it reads fragments ahead, but its k-steps are not all unrolled");
    const Loop* const around = loops_.empty() ? nullptr : loops_.back();
    const bool fetches = around && around->stages > 1 && fetching_matmul(*around) == &s;
    diagnostics_.require(!s.fetching || (p.reads_ahead && fetches),
                         "it contains a fetch that does not belong to the loop around");
    const auto is_stamp = [](const Step& step) { return step.action.is<Stamp>(); };
    const bool alone = fetches && std::ranges::count_if(around->body, std::not_fn(is_stamp)) == 1;
    diagnostics_.require(!s.holds_last || (s.fetching && alone && p.k_steps() % 2 == 0),
                         "its last k-step is deferred, but it is not all of the body of a pipelined loop");
    if (p.kind == MatmulKind::gemv) return thin(s);
    const int step = p.kind == MatmulKind::mma_sync ? p.depth() : 4;
    const int k = (p.k + step - 1) / step * step;
    diagnostics_.require(p.kind == MatmulKind::mma_sync || p.a.buffer, "the left operand is not in a buffer");
    operand(p, p.a, s.layout.cover(0), k);
    operand(p, p.b, s.layout.cover(1), k);
    if (p.kind == MatmulKind::mma_sync) {
      diagnostics_.require(s.layout.cover(0) % (16 * p.warps_m) == 0 && s.layout.cover(1) % (8 * p.warps_n) == 0,
                           "accumulators of [{},{}] are not whole instructions of {} x {} warps", s.layout.cover(0),
                           s.layout.cover(1), p.warps_m, p.warps_n);
      const int slices = p.slices();
      diagnostics_.require(slices == 1 || (std::has_single_bit(unsigned(slices)) && p.k % (slices * p.depth()) == 0),
                           "{} of k are not {} slices of whole instructions", p.k, slices);
      const Layout left = accumulator_layout({p.m, p.n}, p.warps_m, p.warps_n, p.pairs(), slices);
      diagnostics_.require(s.layout == left, "accumulators have layout {}, but the instruction's is {}",
                           to_string(s.layout), to_string(left));
      diagnostics_.require(p.warps_m * p.warps_n * slices == role_->warps,
                           "instructions of {} x {} x {} warps in a role of {}", p.warps_m, p.warps_n, slices,
                           role_->warps);
      if (p.a.value) left_registers(p);
    }
  }
  void left_registers(const Matmul& p) {
    const std::string name = name_of(plan_, p.a.value);
    diagnostics_.require(plan_.values[p.a.value].layout == p.left_layout() && p.warps_n == 1,
                         "{} does not have the layout of the left operand", name);
    diagnostics_.require(plan_.storage(p.a.value).type == p.type, "{} is {}, but {} is multiplied", name,
                         tessera::internal::name(plan_.storage(p.a.value).type), tessera::internal::name(p.type));
    diagnostics_.require(info(p.type).bytes > 1,
                         "{} is in registers, and no thread has four consecutive bytes of a row", name);
    diagnostics_.require(p.unrolled == 0, "{} is in registers, but the matmul is not unrolled", name);
  }
  // Each thread multiplies its elements of a and b and accumulates into its elements of the result.
  void thin(const Mma& s) {
    const Matmul& p = s.matmul;
    if (!p.a.value || !p.b.value || p.layout_a.rank() != 2 || p.layout_b.rank() != 2)
      return diagnostics_.require(false, "a gemv must multiply registers by registers");
    const auto check = [&](ValueId id, const Layout& layout, const Shape& shape) {
      const Value& value = plan_.values[id];
      diagnostics_.require(value.layout == layout && value.shape == shape, "{} is {} {}, but {} {} is multiplied",
                           name_of(plan_, id), to_string(value.shape), to_string(value.layout), to_string(shape),
                           to_string(layout));
      diagnostics_.require(plan_.storage(id).type == p.type, "{} is {}, but {} is multiplied", name_of(plan_, id),
                           tessera::internal::name(plan_.storage(id).type), tessera::internal::name(p.type));
    };
    check(p.a.value, p.layout_a, {p.m, p.k});
    check(p.b.value, p.layout_b, {p.k, p.n});
    diagnostics_.require(p.layout_a.thread_digits(0).empty() && s.layout.thread_digits(0).empty(),
                         "rows are spread over threads");
    diagnostics_.require(
        p.layout_a.thread_digits(1) == p.layout_b.thread_digits(0) && p.layout_a.cover(1) == p.layout_b.cover(0) &&
            s.layout.thread_digits(1) == p.layout_b.thread_digits(1) && s.layout.cover(1) == p.layout_b.cover(1),
        "{} and {} are multiplied, but the accumulators are {}", to_string(p.layout_a), to_string(p.layout_b),
        to_string(s.layout));
    diagnostics_.require(
        p.lanes_k == p.layout_b.bits_along(0, Place::lane) && p.warps_k == p.layout_b.bits_along(0, Place::warp),
        "k is recorded as spread over lanes & {}, warps & {}, but b has layout {}", p.lanes_k, p.warps_k,
        to_string(p.layout_b));
    const auto has_storage_class = [&](ValueId id, auto... storage_classes) {
      return ((plan_.storage(id).storage_class == storage_classes) || ...);
    };
    const auto together = [&](ValueId id, ValueId other) {
      diagnostics_.require(!has_storage_class(id, StorageClass::registers) ||
                               !has_storage_class(other, StorageClass::shared, StorageClass::workspace),
                           "{} is in registers, and {} in memory, but one loop indexes both", name_of(plan_, id),
                           name_of(plan_, other));
    };
    together(p.a.value, p.b.value);
    together(p.b.value, p.a.value);
  }
  void operand(const Matmul& p, const MatmulOperand& o, int other, int k) {
    if (!o.buffer) return diagnostics_.require(&o == &p.a, "the right operand is not in a buffer");
    const Buffer& buffer = plan_.buffers[o.buffer];
    const std::string name = name_of(plan_, o.buffer);
    const int rows = o.k_major ? other : k, columns = o.k_major ? k : other;
    diagnostics_.require(buffer.rows >= rows && buffer.columns >= columns, "{} is [{},{}], but [{},{}] is read", name,
                         buffer.rows, buffer.columns, rows, columns);
    diagnostics_.require(o.stored == buffer.type, "{} holds {}, but {} is read", name,
                         tessera::internal::name(buffer.type), tessera::internal::name(o.stored));
    diagnostics_.require(!p.in_stored_order() || (o.stored == p.type && o.casts.empty()),
                         "{} holds {}, but {} is multiplied without conversion", name,
                         tessera::internal::name(o.stored), tessera::internal::name(p.type));
    diagnostics_.require(bool(o.stage) == (buffer.stages > 1), "{} has {} stages, but {} is given", name, buffer.stages,
                         o.stage ? "a loop" : "no loop");
    bool inside = !o.stage;
    for (const Loop* loop : loops_) inside |= loop->loop == o.stage && loop->stages == buffer.stages;
    diagnostics_.require(
        inside, "{} is read by the stage of a loop that does not enclose it, or has another number of stages", name);
  }

  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Role* role_ = nullptr;
  std::vector<const Loop*> loops_;
};

}  // namespace

void check_accesses(Diagnostics& diagnostics) { Accesses(diagnostics).run(); }

}  // namespace tessera::internal::codegen
