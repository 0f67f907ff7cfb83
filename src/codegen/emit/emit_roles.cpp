// Pipelines, TMA, wgmma, clusters and split-K.
#include "codegen/emit/emit_steps.hpp"
#include "codegen/plan/names.hpp"
#include "codegen/plan/spelling.hpp"
#include "codegen/target/kernel_parameter.hpp"

namespace tessera::internal::codegen {
namespace {

const Pipeline& pipeline_of(Writer& w, PipelineStateId id) {
  w.states.insert(id);
  w.pipelines.insert(w.plan.states[id].pipeline);
  w.use_memory(false);
  return w.plan.pipelines[w.plan.states[id].pipeline];
}

// The mbarrier of the stage of a pipeline state.
std::string barrier_at(Writer& w, PipelineStateId id, std::string_view which) {
  pipeline_of(w, id);
  return fmt::format("{}_{} + {}.stage", name_of(w.plan, w.plan.states[id].pipeline), which, name_of(w.plan, id));
}

// The CTA's own part begins at `own` along coordinate `axis`, if that is not -1.
std::string coordinates(Writer& w, const std::vector<TileCoordinate>& at, int axis = -1, int own = 0) {
  std::string text;
  for (const TileCoordinate& c : at) {
    if (!text.empty()) text += ", ";
    const IndexExpression index = scalar(w, c.index);
    IndexExpression start = (c.far ? cast_i64(index) : index) * c.scale + c.offset;
    if (&c - at.data() == axis) start = start + IndexExpression::call("cluster_rank", {}) * own;
    text += (c.far ? IndexExpression::call("box_coordinate", {start}) : start).text();
  }
  return text;
}

// Number of rows of a buffer's panels that TMA boxes fill.
IndexExpression rows_filled(const Writer& w, const ClippedRows& clipped) {
  return IndexExpression::call("minimum",
                               {w.extent(clipped.argument, clipped.axis), w.plan.buffers[clipped.buffer].rows});
}

// A warp group's share of a role's rows.
int rows_of_group(const Writer& w, int rows) { return rows / (w.role.warps / 4); }

}  // namespace

std::string stage_at(Writer& w, BufferId id, PipelineStateId state) {
  w.buffer(id);
  if (!state) return name_of(w.plan, id);
  pipeline_of(w, state);
  return fmt::format("{} + {}.stage * {}", name_of(w.plan, id), name_of(w.plan, state), stage_bytes(w.plan, id));
}

IndexExpression consumer_group_barrier(Writer& w, int first, bool next) {
  if (w.role.consumer_groups == 1) return first;
  const IndexExpression consumer_group = IndexExpression::variable("team", w.role.consumer_groups);
  return (next ? (consumer_group + 1) % w.role.consumer_groups : consumer_group) + first;
}

void emit(Writer& w, const ElectOne& elected) {
  w.uses.thread = true;
  const bool all = elected.threads == w.role.threads();
  w.open("if (thread{} == 0) {{", all ? "" : fmt::format(" % {}", elected.threads));
  emit(w, elected.body);
  w.close();
}

void emit(Writer& w, const IfNotPrefetched& unless) {
  w.open("if (!take_one(brought)) {{");
  emit(w, unless.body);
  w.close();
}

void emit(Writer& w, const IfConsumerGroup& of_consumer_group) {
  w.open("if (team == {}) {{", of_consumer_group.consumer_group);
  emit(w, of_consumer_group.body);
  w.close();
}

void emit(Writer& w, const IfFirstSplit& of_part) {
  w.open("if ({} {} 0) {{", of_part.share ? w.name(of_part.share) : "cluster_rank()", of_part.first ? "==" : ">");
  emit(w, of_part.body);
  w.close();
}

void emit(Writer& w, const IfInGrid& in_grid) {
  w.open("if (block{0} < {1}) {{", w.phase.first_axis, w.grid(0));
  emit(w, in_grid.body);
  w.close();
}

void emit(Writer& w, const ForEachPeer& each) {
  const std::string k_iterations = scalar(w, each.k_iterations).text();
  w.open(
      "for (Peers others = peers_of(span, blocks, {0}, lockstep_rows); others.left > 0; next_of(others, blocks, {0}, "
      "lockstep_rows)) {{",
      k_iterations);
  emit(w, each.body);
  w.close();
}

namespace {

void emit(Writer& w, const SplitKRange& share) {
  const std::string first = w.name(share.first), count = w.name(share.count);
  if (w.phase.schedule.split_k == SplitK::stream_k) {
    w.line("const int {} = span.first;", first);
    w.line("const int {} = span.k_iterations;", count);
    return;
  }
  const IndexExpression k_iterations = scalar(w, share.k_iterations);
  w.line("const int {} = share_of({}, cluster_rank());", first, k_iterations);
  w.line("const int {} = share_of({}, cluster_rank() + 1) - {};", count, k_iterations, first);
}

void emit(Writer& w, const StorePartial& put) {
  w.uses.thread = true;
  w.line("put_part<{}>({}, {}, thread);", w.role.threads(), w.scratch(put.scratch, ElementType::f32), w.name(put.sums));
}

void emit(Writer& w, const ReducePartials& add) {
  w.uses.thread = true;
  if (w.plan.scratch[add.scratch].in_workspace)
    return w.line("add_part<{}>({}, of_block({}, {}ll, others.block), thread);", w.role.threads(), w.name(add.sums),
                  w.scratch(add.scratch, ElementType::f32), w.plan.workspace_bytes);
  w.line("add_parts<{}>({}, {}, thread);", w.role.threads(), w.name(add.sums),
         w.scratch(add.scratch, ElementType::f32));
}

void emit(Writer& w, const ClusterBarrier&) { w.line("cluster_barrier();"); }

void emit(Writer& w, const SignalPartial&) { w.line("set_flag(flags + block_index());"); }

void emit(Writer& w, const WaitPartial&) { w.line("wait_flag(flags + others.block);"); }

void emit(Writer& w, const WarpBarrier&) { w.line("warp_barrier();"); }

void emit(Writer& w, const OrderedBarrier& turn) {
  w.uses.warp = true;
  constexpr int threads = 2 * 128;  // one warp group waits, another arrives
  const int groups = w.role.warps / 4;
  const IndexExpression group = IndexExpression::variable("warp", w.role.warps) / 4;
  if (turn.kind == OrderedBarrier::Kind::wait) return w.line("named_barrier({}, {});", group + turn.id, threads);
  if (turn.kind == OrderedBarrier::Kind::begin) w.open("if ({} == {}) {{", group, groups - 1);
  w.line("named_barrier_arrive({}, {});", (group + 1) % groups + turn.id, threads);
  if (turn.kind == OrderedBarrier::Kind::begin) w.close();
}

void emit(Writer& w, const Stamp& stamp) {
  w.uses.thread = w.uses.stamps = true;
  const std::string place = fmt::format("stamp_row, stamp_room, thread == {}, stamped", w.role.stamp_thread);
  if (!stamps::has_place(stamp.number)) return w.line("stamp({}, {});", place, stamp.number);
  w.line("stamp_place({}, {}, {});", place, stamp.number,
         stamp.with_tile ? "static_cast<u32>(block)" : fmt::format("{}u", stamps::no_tile));
}

void emit(Writer& w, const SetMaxNReg& set) { w.line("setmaxnreg_{}<{}>();", set.more ? "inc" : "dec", set.registers); }

// Rows of the matrix run along the contiguous axis.
void emit(Writer& w, const PrefetchL2& prefetch) {
  const TileAccess& access = prefetch.access;
  const TileAccess::Axis& selected = access.axes[static_cast<std::size_t>(prefetch.selected)];
  const int columns = w.plan.variant.tensors[static_cast<std::size_t>(access.parameter)].contiguous_axis;
  const auto along = [&](int axis) {
    const IndexExpression extent = w.extent(access, axis);
    if (axis != selected.tensor_axis) return fmt::format("0, {}, {}", prefetch.most, extent);
    return fmt::format("{}, {}, {}", cast_i64(scalar(w, selected.index)) * selected.extent, selected.extent, extent);
  };
  w.line("{}prefetch_l2<{}>({}, {}, {}, {});", prefetch.unless_may_prefetch ? "if (!may_prefetch) " : "",
         w.role.threads(), tensor_name(w.plan, access.parameter), along(1 - columns), along(columns),
         w.stride(access, 1 - columns));
}

void emit(Writer& w, const PrefetchMap& prefetch) { w.line("prefetch_map(&{});", name_of(w.plan, prefetch.map)); }

void emit(Writer& w, const InitPipeline& init) {
  const Pipeline& pipeline = w.plan.pipelines[init.pipeline];
  const std::string name = name_of(w.plan, init.pipeline);
  w.pipelines.insert(init.pipeline);
  w.use_memory(false);
  w.line("init_pipeline<{0}>({1}_full, {2}, {1}_empty, {3});", pipeline.stages, name, pipeline.full_arrivals,
         pipeline.empty_arrivals);
}

void emit(Writer& w, const MbarrierInitFence&) { w.line("barrier_init_fence();"); }

void emit(Writer& w, const ZeroFillRows& clear) {
  const Pipeline& pipeline = w.plan.pipelines[clear.pipeline];
  const int threads = w.role.threads();
  w.uses.thread = true;
  const bool clusters = w.phase.in_clusters();
  w.line("const int stages_used = {} + {} < blocks ? {} : {};", clusters ? "cluster_index()" : "block_index()",
         clusters ? "clusters()" : "grid_size()", pipeline.stages,
         IndexExpression::call("minimum", {scalar(w, clear.k_iterations), pipeline.stages}));
  IndexExpression thread = IndexExpression::variable("thread");
  if (w.role.consumer_groups > 1) thread = IndexExpression::variable("team", w.role.consumer_groups) * threads + thread;
  for (const ClippedRows& clipped : pipeline.clipped) {
    const Buffer& buffer = w.buffer(clipped.buffer);
    const IndexExpression panels =
        IndexExpression::variable("stages_used") * (buffer.stage_bytes() / buffer.panel_bytes());
    w.line("clear_rest<{}, {}>({}, {}, {}, {});", buffer.rows, threads * w.role.consumer_groups,
           name_of(w.plan, clipped.buffer), panels, w.extent(clipped.argument, clipped.axis), thread);
  }
}

void emit(Writer& w, const ZeroFillPastEnd& clear) {
  const Buffer& buffer = w.buffer(clear.buffer);
  w.uses.thread = true;
  w.line("clear_rest<{}, {}>({}, {}, {}, thread);", buffer.rows, w.role.threads(),
         stage_at(w, clear.buffer, clear.state), buffer.stage_bytes() / buffer.panel_bytes(), scalar(w, clear.filled));
}

// The first use of each stage waits for the phase before the first, which counts as complete.
void emit(Writer& w, const WaitEmpty& acquire) {
  w.line("barrier_wait({}, {}.phase ^ 1);", barrier_at(w, acquire.state, "empty"), name_of(w.plan, acquire.state));
}

void emit(Writer& w, const ArriveExpectTx& expect) {
  const Pipeline& pipeline = pipeline_of(w, expect.state);
  std::int64_t whole = pipeline.bytes;
  IndexExpression bytes = 0;
  for (const ClippedRows& clipped : pipeline.clipped) {
    const Buffer& buffer = w.plan.buffers[clipped.buffer];
    whole -= buffer.stage_bytes();
    bytes = bytes + rows_filled(w, clipped) * (buffer.stage_bytes() / buffer.rows);
  }
  w.line("barrier_expect({}, {});", barrier_at(w, expect.state, "full"), bytes + whole);
}

// With multicast, each CTA loads the rows from its rank on.
void emit(Writer& w, const TmaLoad& load) {
  const bool multicast = load.multicast_axis >= 0;
  const Buffer& buffer = w.buffer(load.buffer);
  const auto axis = static_cast<std::size_t>(std::max(load.multicast_axis, 0));
  const int rows = w.plan.tensor_maps[load.map].tensor.box[axis];
  const std::string at = coordinates(w, load.at, load.multicast_axis, rows);
  IndexExpression offset = load.offset;
  if (multicast) offset = offset + IndexExpression::call("cluster_rank", {}) * (rows * buffer.panel_row_bytes());
  w.line("{}(&{}, {}, {}, {});", multicast ? "tma_load_multicast" : "tma_load", name_of(w.plan, load.map),
         beyond(stage_at(w, load.buffer, load.state), offset), barrier_at(w, load.state, "full"), at);
}

void emit(Writer& w, const Arrive& arrive) { w.line("barrier_arrive({});", barrier_at(w, arrive.state, "full")); }

void emit(Writer& w, const WaitFull& wait) {
  w.line("barrier_wait({}, {}.phase);", barrier_at(w, wait.state, "full"), name_of(w.plan, wait.state));
}

void emit(Writer& w, const ArriveEmpty& release) {
  const Pipeline& pipeline = pipeline_of(w, release.state);
  const std::string condition =
      release.not_first ? fmt::format("if ({} > 0) ", name_of(w.plan, release.not_first)) : "";
  const std::string_view arrive = pipeline.cluster > 1 ? "barrier_arrive_cluster" : "barrier_arrive";
  if (release.behind == 0)
    w.line("{}{}({});", condition, arrive, barrier_at(w, release.state, "empty"));
  else
    w.line("{}{}({}_empty + stage_behind<{}>({}, {}));", condition, arrive,
           name_of(w.plan, w.plan.states[release.state].pipeline), pipeline.stages, name_of(w.plan, release.state),
           release.behind);
}

void emit(Writer& w, const AdvanceStage& advance) {
  const Pipeline& pipeline = pipeline_of(w, advance.state);
  w.line("advance<{}>({}, {});", pipeline.stages, name_of(w.plan, advance.state), scalar(w, advance.by));
}

void emit(Writer& w, const DeclareAccumulator& reserve) {
  declare(w, reserve.value, false, reserve.zeroed ? " = {}" : "");
}

void emit(Writer& w, const RegisterFence& fence) {
  w.line("{}_fence({});", w.plan.storage(fence.value).packed > 1 ? "fragment" : "register", w.name(fence.value));
}

void emit(Writer& w, const WgmmaFence&) { w.line("wgmma_fence();"); }

void emit(Writer& w, const Wgmma& s) {
  const Buffer& b = w.plan.buffers[s.b];
  const MatrixDescriptor right = descriptor_of(b, s.b_k_major);
  const int rows = rows_of_group(w, s.m), blocks = rows / 64, first_column = w.plan.values[s.out].origin[1];
  const int groups = w.role.warps / 4;
  const int depth = wgmma_depth(s.type), first = s.first_k / depth, end = first + s.k / depth;
  // k-steps stay within a panel, whose 128-byte rows are swizzled.
  const auto step = [&](const Buffer& buffer, bool k_major, int k_step) {
    const int in_panel = k_major ? buffer.panel_columns() / depth : 0;
    if (!k_major || buffer.columns <= buffer.panel_columns()) return fmt::format("k * {}", k_step);
    return fmt::format("k / {0} * {1} + k % {0} * {2}", in_panel, buffer.panel_bytes() / 16, k_step);
  };
  w.open("{{");
  MatrixDescriptor left;
  std::int64_t of_block = 0;
  if (!s.left) {
    const Buffer& a = w.plan.buffers[s.a];
    left = descriptor_of(a, s.a_k_major);
    of_block = (s.a_k_major ? 64 * 128 : a.panel_bytes()) / 16;
    std::string at = stage_at(w, s.a, s.a_state);
    // The rows of a warp group: further rows of each panel, or other panels.
    const std::int64_t of_group = s.a_k_major ? std::int64_t{rows} * 128 : a.panel_bytes() * (rows / a.panel_columns());
    if (groups > 1) at += fmt::format(" + {} / 4 * {}", w.warp(), of_group);
    w.line("const u64 left_matrix = matrix_descriptor<{}, {}>({});", left.leading, left.stride, at);
  }
  w.line("const u64 right_matrix = matrix_descriptor<{}, {}>({});", right.leading, right.stride,
         beyond(stage_at(w, s.b, s.b_state), first_column * b.panel_row_bytes()));
  const std::string adds = s.overwrites         ? fmt::format("k > {}", first)
                           : s.overwrites_first ? name_of(w.plan, s.overwrites_first) + " > 0 || k > 0"
                                                : "true",
                    to_right = step(b, s.b_k_major, right.k_step);
  w.unroll(true);
  w.open("for (int k = {}; k < {}; ++k) {{", first, end);
  w.unrolled("m", blocks, [&](const IndexExpression& m) {
    const std::string to = beyond(w.name(s.out), m * (s.n / 2));
    if (s.left) {
      const IndexExpression piece = m * (end - first) + IndexExpression::variable("k") + -first;
      w.line("wgmma_left_{}_n{}<{}>({}, {}, right_matrix + {}, {});", name(s.type), s.n, s.b_k_major ? 0 : 1, to,
             beyond(w.name(s.left), piece * 4), to_right, adds);
    } else {
      w.line("wgmma_{}_n{}<{}, {}>({}, {} + {}, right_matrix + {}, {});", name(s.type), s.n, s.a_k_major ? 0 : 1,
             s.b_k_major ? 0 : 1, to, beyond("left_matrix", m * of_block),
             step(w.plan.buffers[s.a], s.a_k_major, left.k_step), to_right, adds);
    }
  });
  w.close();
  w.close();
}

// A warp group has 64 rows, so that columns follow one another in the registers of a thread.
void emit(Writer& w, const PromoteSums& s) {
  const Value& sums = w.plan.values[s.sums];
  const IndexExpression r = IndexExpression::variable("r", sums.layout.registers());
  w.unroll(true);
  w.open("for (int r = 0; r < {}; ++r) {{", sums.layout.registers());
  w.line("{}[{}] += {}[r];", w.name(s.accumulators), r + sums.origin[1] / 2, w.name(s.sums));
  w.close();
}

void emit(Writer& w, const WgmmaCommit&) { w.line("wgmma_commit();"); }

void emit(Writer& w, const WgmmaWait& wait) { w.line("wgmma_wait<{}>();", wait.pending); }

void emit(Writer& w, const ProxyFence&) { w.line("async_proxy_fence();"); }

void emit(Writer& w, const TmaStore& store) {
  const std::string at = coordinates(w, store.at);
  w.buffer(store.buffer);
  w.line("tma_store_guarded(&{}, {}, {});", name_of(w.plan, store.map),
         beyond(name_of(w.plan, store.buffer), store.offset), at);
}

void emit(Writer& w, const TmaStoreCommit&) { w.line("tma_store_commit();"); }

void emit(Writer& w, const TmaStoreWait& wait) { w.line("tma_store_wait<{}>();", wait.pending); }

void emit(Writer& w, const NamedBarrier& barrier) {
  w.line("named_barrier{}({}, {});", barrier.arrives ? "_arrive" : "",
         consumer_group_barrier(w, barrier.id, barrier.next_consumer_group), barrier.threads);
}

void emit(Writer& w, const GridDependencyWait& wait) {
  w.line("{}{}", wait.unless_may_prefetch ? "if (!may_prefetch) " : "",
         w.plan.in_sequence ? fmt::format("grid_wait<{}>(previous);", w.plan.threads()) : grid_dependency_wait);
}

void emit(Writer& w, const GridDependencyTrigger&) { w.line("griddep_launch_dependents();"); }

}  // namespace

void emit_role_step(Writer& w, const Action& action) {
  visit_kind([&]<class Kind>(const Kind& kind) {
    if constexpr (OfRoles<Kind>) emit(w, kind);
  }, action);
}

}  // namespace tessera::internal::codegen
