// The roles of a warp-specialized matmul: each lowers its part of the graph.
#include <fmt/format.h>

#include "codegen/lower/sm90/lower_split_k.hpp"
#include "codegen/lower/sm90/matmul_pipeline.hpp"
#include "codegen/lower/sm90/tma_boxes.hpp"
#include "codegen/lower/sm90/warp_role.hpp"
#include "codegen/schedule/raster_order.hpp"
#include "codegen/schedule/wgmma_tiles.hpp"

namespace tessera::internal::lowering {
namespace {

/// Both roles go from grid tile to grid tile, with a state of the pipeline.
class PipelineRole : public WarpRole {
 public:
  PipelineRole(MatmulPipeline& shared, std::string_view name)
      : WarpRole(shared.how.matmuls[0]),
        shared_(shared),
        state_(shared.plan.states.add({.label = {.stem = fmt::format("at_{}", name)}, .pipeline = shared.pipeline})) {}
  Iterations iterations(Steps& steps, Id loop) override {
    if (!share_.count) return RoleLowering::iterations(steps, loop);
    return {element_of(steps.plan, share_.count, steps.plan.values[share_.count].layout), share_.first};
  }

 protected:
  // Numbers that follow from the launch alone are computed before the loop over grid tiles.
  void launch_numbers(Steps& steps, const LowerNodes& lower) {
    lower([&](Id id) { return shared_.how.launch[id] != 0; });
    if (shared_.how.split_k == SplitK::cluster) split_k_range(steps);
  }
  void split_k_range(Steps& steps) {
    const Id k_iterations = steps.node(shared_.how.loop).in[0];
    const auto number = [&](std::string_view stem) {
      return steps.values.add(steps.values.label(k_iterations, stem), k_iterations, steps.layouts.of[k_iterations]);
    };
    share_ = {number("first"), number("k_iterations"), steps.scalar(k_iterations)};
    push(steps, share_);
  }
  template <class Inside>
  void tiles(Steps& steps, int step, const Inside& inside) {
    TileLoop loop{.first = 0, .step = step, .body = {}};
    const bool by_grid = shared_.how.split_k == SplitK::stream_k;
    if (by_grid) loop.k_iterations = all_k_iterations(steps);
    steps.within(loop.body, [&] {
      if (by_grid) split_k_range(steps);
      inside();
    });
    push(steps, std::move(loop));
  }
  bool in_tile(Id id) const { return !shared_.how.launch[id]; }
  tessera::internal::codegen::Operand all_k_iterations(Steps& steps) {
    return steps.scalar(steps.node(shared_.how.loop).in[0]);
  }

  MatmulPipeline& shared_;
  const PipelineStateId state_;
  SplitKRange share_;  // with split-K
};

class Producer final : public PipelineRole {
 public:
  explicit Producer(MatmulPipeline& shared) : PipelineRole(shared, "producer") {
    if (shared.prefetches)
      prefetched_ = shared.plan.states.add({.label = {.stem = "at_prefetched"}, .pipeline = shared.pipeline});
  }

  bool does(Id id) const override { return shared_.how.ahead[id] || id == shared_.how.loop; }
  void whole(Steps& steps, const LowerNodes& lower) override {
    set_registers(steps, shared_.producer_registers(), false);
    launch_numbers(steps, lower);
    const auto tile = [&] { lower([&](Id id) { return in_tile(id); }); };
    if (shared_.prefetches) prefetch_before_wait(steps, tile);
    const bool by_threads = !shared_.how.by_threads.empty();
    const bool in_cluster = shared_.how.split_k == SplitK::cluster;
    if (!in_cluster && !by_threads) return elected(steps, 128, [&] { tiles(steps, 1, tile); });
    tiles(steps, 1, [&] {
      by_threads ? tile() : elected(steps, 128, tile);
      for (int i = 0; in_cluster && i < 2; ++i) push(steps, ClusterBarrier{});
    });
  }
  void end_iteration(Steps& steps, LoopId) override {
    if (is_prefetching_) {
      load_right(steps, prefetched_);
      return push(steps, AdvanceStage{prefetched_, literal(1)});
    }
    push(steps, WaitEmpty{state_});
    if (shared_.how.by_threads.empty()) {
      load_tma_boxes(steps);
    } else {
      if (shared_.plan.pipelines[shared_.pipeline].bytes > 0) elected(steps, 128, [&] { load_tma_boxes(steps); });
      for (const MatmulPipeline::Operand& operand : shared_.operands)
        if (operand.by_threads) copy(steps, operand);
      push(steps, ProxyFence{});
      push(steps, Arrive{state_});
    }
    push(steps, AdvanceStage{state_, literal(1)});
  }

 private:
  // The pipeline has that many free stages.
  template <class Tile>
  void prefetch_before_wait(Steps& steps, const Tile& tile) {
    PrefetchBeforeWait bring{.most = shared_.how.stages, .body = {}};
    is_prefetching_ = true;
    steps.values.call("_prefetched");
    steps.within(bring.body, tile);
    steps.values.call("");
    is_prefetching_ = false;
    push(steps, std::move(bring));
  }
  void load_tma_boxes(Steps& steps) {
    if (!shared_.prefetches) {
      push(steps, ArriveExpectTx{state_});
      return load(steps, state_, [](const MatmulPipeline::Operand&) { return true; });
    }
    IfNotPrefetched unless;
    steps.within(unless.body, [&] { load_right(steps, state_); });
    push(steps, std::move(unless));
    load(steps, state_, [](const MatmulPipeline::Operand& operand) { return operand.left; });
  }
  void load_right(Steps& steps, PipelineStateId at) {
    push(steps, ArriveExpectTx{at});
    load(steps, at, [](const MatmulPipeline::Operand& operand) { return !operand.left; });
  }
  // Loads boxes of the operands for which `which` holds.
  template <class Which>
  void load(Steps& steps, PipelineStateId at, const Which& which) {
    for (const MatmulPipeline::Operand& operand : shared_.operands) {
      if (operand.by_threads || !which(operand)) continue;
      const Buffer& buffer = shared_.plan.buffers[operand.buffer];
      load_panels(steps, operand.map, operand.buffer, at,
                  [&](int panel) { return place_of_panel(steps, shared_.how.loop, operand.load, panel, buffer); });
    }
  }

  // Rows and columns of the buffer become the last axes of the tile; all others have an extent of 1.
  void copy(Steps& steps, const MatmulPipeline::Operand& operand) {
    const Buffer& buffer = shared_.plan.buffers[operand.buffer];
    TileAccess access = steps.access_of(operand.load);
    const int rank = static_cast<int>(access.axes.size());
    const TileAccess::Axis rows = access.axes[static_cast<std::size_t>(operand.rows)],
                           columns = access.axes[static_cast<std::size_t>(operand.columns)];
    for (int i : {std::max(operand.rows, operand.columns), std::min(operand.rows, operand.columns)})
      access.axes.erase(access.axes.begin() + i);
    access.axes.insert(access.axes.end(), {rows, columns});
    access.fast = access.fast == operand.columns ? rank - 1 : -1;
    std::array<int, max_rank> extents{};
    for (int i = 0; i < rank; ++i)
      extents[static_cast<std::size_t>(i)] = access.axes[static_cast<std::size_t>(i)].extent;
    Sweep sweep{.shape = Shape(std::span(extents).first(static_cast<std::size_t>(rank))), .layout = {}};
    // At least a pair: two 16-bit elements make a 32-bit word.
    const int vector = std::max(access.vector, 2);
    sweep.layout = panels_layout(sweep.shape, buffer.panel_columns(), vector, steps.threads / 32);
    const int words = access.vector == 1 ? vector : vector * info(buffer.type).bytes / 4;
    const int under_way = shared_.of_copies_under_way(info(buffer.type).bytes);
    sweep.at_once = std::min(sweep.layout.registers() / vector, under_way / words);
    tessera::internal::codegen::Operand element{.kind = tessera::internal::codegen::Operand::Kind::fetched};
    const ElementType type = steps.node(operand.load).type;
    const Op op = type == buffer.type ? Op::broadcast : Op::cast;
    sweep.expression.terms = {{op, buffer.type, type, {std::move(element)}}};
    sweep.reads = {std::move(access)};
    steps.push(operand.load, StoreShared{.buffer = operand.buffer, .state = state_, .sweep = std::move(sweep)});
  }

  PipelineStateId prefetched_;
  bool is_prefetching_ = false;  // lowering the prefetch before the PDL wait
};

class Consumer final : public PipelineRole {
 public:
  explicit Consumer(MatmulPipeline& shared)
      : PipelineRole(shared, "consumer"), fragments_(shared.how.computed, shared.tiles, shared.how.groups) {
    if (shared.how.consumer_groups > 1) ping_pong_ = shared.plan.allocate_named_barriers(shared.how.consumer_groups);
    if (shared.how.tma_tensors.empty()) return;
    const Id store = shared.how.tma_tensors[0];
    const int parameter = shared.analysis.access(store).parameter;
    const ElementType type = shared.analysis.graph.parameters[static_cast<std::size_t>(parameter)].type;
    for (int i = 0; i < 2; ++i) {
      Buffer buffer{.label = {.stem = fmt::format("out{}", i)},
                    .type = type,
                    .rows = shared.m,
                    .columns = 1,
                    .form = SharedForm::panels,
                    .consumer_groups = shared.how.consumer_groups};
      buffer.columns = buffer.panel_columns();
      out_[i] = shared.plan.buffers.add(std::move(buffer));
    }
    parts_ = shared.n / shared.plan.buffers[out_[0]].columns;
  }

  void whole(Steps& steps, const LowerNodes& lower) override {
    set_registers(steps, shared_.consumer_registers(), true);
    launch_numbers(steps, lower);
    if (shared_.is_clipped()) clear_rest(steps);
    if (shared_.how.consumer_groups > 1) {
      // The second consumer group starts with the second grid tile: it skips the first tile's stages, and gives the
      // first group the first turn.
      IfConsumerGroup second{.consumer_group = 1, .body = {}};
      steps.within(second.body, [&] {
        push(steps, NamedBarrier{
                        .id = ping_pong_, .threads = 2 * steps.threads, .arrives = true, .next_consumer_group = true});
        push(steps, AdvanceStage{state_, all_k_iterations(steps), true});
      });
      push(steps, std::move(second));
    }
    tiles(steps, shared_.how.consumer_groups, [&] { tile(steps, lower); });
    if (parts_ > 0) elected(steps, steps.threads, [&] { push(steps, TmaStoreWait{0}); });
  }

  bool does(Id id) const override {
    return std::ranges::none_of(shared_.how.computed, [&](const auto& one) { return one.second.nodes.contains(id); });
  }
  // Beside the accumulators, a thread may have no registers to hold more than a few elements of a tile. Values that
  // each k-iteration needs stay in registers.
  bool reads_where_used(Id id) const override {
    const auto needs = [&](const auto& one) { return one.second.values.contains(id); };
    if (std::ranges::any_of(shared_.how.computed, needs)) return false;
    if (shared_.how.reads_ahead && is_read_ahead(id)) return false;
    return shared_.analysis[id].shape.size() > 2 * 128 * std::int64_t{shared_.how.groups} / 8;
  }
  void before_loop(Steps& steps) override {
    // Fenced here, not in each k-iteration: otherwise ptxas reads the initial accumulators between wgmmas, and waits
    // for each of them.
    for (const Id id : shared_.how.matmuls) {
      const Id sums = steps.node(id).in[2];
      if (!skips_zero_init(sums)) push(steps, RegisterFence{steps.values.of(sums)});
    }
    fragments_.reserve(steps);
    if (shared_.how.consumer_groups > 1) push(steps, NamedBarrier{.id = ping_pong_, .threads = 2 * steps.threads});
  }
  bool skips_zero_init(Id argument) const override {
    return starts_from_zeros(shared_.analysis, shared_.how.loop, argument);
  }
  bool mma(Steps& steps, Id id, LoopId loop) override {
    const std::vector<Id>& matmuls = shared_.how.matmuls;
    const Id carried = steps.node(id).in[2];
    const bool overwrites_first = skips_zero_init(carried);
    sums_.push_back(steps.values.set(id, steps.values.of(carried)));
    const MatmulPipeline::Operand& right = shared_.operands[shared_.right.at(id)];
    PendingWgmma matmul{.wgmma = {.out = sums_.back(),
                                  .a = {},
                                  .b = right.buffer,
                                  .left = {},
                                  .a_state = {},
                                  .b_state = state_,
                                  .type = steps.node(steps.node(id).in[0]).type,
                                  .m = shared_.m,
                                  .n = shared_.n,
                                  .k = shared_.k,
                                  .b_k_major = right.k_major,
                                  .overwrites_first = overwrites_first ? loop : LoopId{}}};
    if (const auto left = shared_.left.find(id); left != shared_.left.end()) {
      matmul.wgmma.a = shared_.operands[left->second].buffer;
      matmul.wgmma.a_state = state_;
      matmul.wgmma.a_k_major = shared_.operands[left->second].k_major;
    } else {
      matmul.left = steps.node(id).in[0];
    }
    pending_.push_back(std::move(matmul));
    if (id != matmuls.back()) return true;
    push(steps, WaitFull{state_});
    if (!shared_.how.computed.empty()) return fragments_.mma(steps, id, std::exchange(pending_, {})), true;
    push(steps, WgmmaFence{});
    const std::vector<PendingWgmma> pending = std::exchange(pending_, {});
    for (std::size_t i = 0; i < pending.size(); ++i) steps.push(matmuls[i], pending[i].wgmma);
    push(steps, WgmmaCommit{});
    for (const ValueId sums : sums_) push(steps, RegisterFence{sums});
    push(steps, WgmmaWait{1});
    return true;
  }
  // The previous stage has been read when all but the last group of wgmmas are done.
  void end_iteration(Steps& steps, LoopId loop) override {
    release(steps, loop);
    push(steps, AdvanceStage{state_, literal(1)});
  }
  void after_loop(Steps& steps) override {
    if (shared_.how.consumer_groups > 1)
      push(steps,
           NamedBarrier{.id = ping_pong_, .threads = 2 * steps.threads, .arrives = true, .next_consumer_group = true});
    push(steps, WgmmaWait{0});
    release(steps, {});
    for (const ValueId sums : sums_) push(steps, RegisterFence{sums});
    if (shared_.how.consumer_groups > 1) push(steps, AdvanceStage{state_, all_k_iterations(steps), true});
  }

  // By TMA, part after part, through two buffers alternately.
  bool store(Steps& steps, Id id) override {
    const auto& tma_tensors = shared_.how.tma_tensors;
    const auto found = std::ranges::find(tma_tensors, id);
    if (found == tma_tensors.end()) {
      const int reads = reads_where_stored(steps, id);
      if (reads > 0) store_by_parts(steps, id, reads);
      return reads > 0;
    }
    const int columns = shared_.plan.buffers[out_[0]].columns;
    const TensorMapId map =
        tma_tensors_of(shared_.analysis, shared_.plan, id, 0, shared_.plan.buffers[out_[0]], TmaUse::store);
    const int before = static_cast<int>(found - tma_tensors.begin()) * parts_,
              all = static_cast<int>(tma_tensors.size()) * parts_;
    for (int part = 0; part < parts_; ++part) {
      const int number = before + part;
      const BufferId to = out_[number % 2];
      // With an odd number of parts, the first goes to the buffer that the last part of the tile before used.
      const int pending = number == 0 && all % 2 ? 0 : 1;
      // Its reads are in flight while it waits for the buffer.
      SweepBuilder builder(steps, sweep_of(steps.analysis, steps.layouts, id), id);
      Sweep sweep = builder.part(1, part * columns, columns).express(steps.node(id).in[0]).take();
      leave_rounding_to_memory(sweep.expression);
      elected(steps, steps.threads, [&] { push(steps, TmaStoreWait{pending}); });
      push(steps, Barrier{});
      steps.push(id, StoreShared{.buffer = to, .sweep = std::move(sweep)});
      push(steps, ProxyFence{});
      push(steps, Barrier{});
      elected(steps, steps.threads, [&] {
        push(steps, TmaStore{map, to, place_of_panel(steps, shared_.how.loop, id, part, shared_.plan.buffers[to])});
        push(steps, TmaStoreCommit{});
      });
    }
    return true;
  }

 private:
  // Reads do not move ahead of a store that may write where they read, and so each would wait for memory in turn. So
  // all reads of a part, which fits in registers, come first.
  void store_by_parts(Steps& steps, Id id, int reads) const {
    const Sweep whole = sweep_of(steps.analysis, steps.layouts, id);
    const int columns = columns_of_part(reads * whole.layout.registers());
    for (int first = 0; first < shared_.n; first += columns) {
      SweepBuilder builder(steps, whole, id);
      Sweep sweep = builder.part(1, first, columns).reading_first().express(steps.node(id).in[0]).take();
      leave_rounding_to_memory(sweep.expression);
      steps.push(id, Store{.kind = Store::Kind::store, .sweep = std::move(sweep), .access = steps.access_of(id)});
    }
  }
  int columns_of_part(int registers) const {
    constexpr int most = 32, block = 16;  // registers of a part's reads; its columns are a multiple of `block`
    int columns = shared_.n;
    for (int parts = 2; parts * block <= shared_.n && registers * columns > most * shared_.n; ++parts)
      if (shared_.n % (parts * block) == 0) columns = shared_.n / parts;
    return columns;
  }
  // The number of tiles, shaped and laid out as the accumulators, that a store of such a tile reads.
  int reads_where_stored(const Steps& steps, Id id) const {
    const Id matmul = shared_.how.matmuls[0];
    const auto like_sums = [&](Id tile) {
      return steps.node(tile).shape == steps.node(matmul).shape && steps.layouts.of[tile] == steps.layouts.of[matmul];
    };
    if (steps.node(id).op != Op::store || !like_sums(steps.node(id).in[0])) return 0;
    int reads = 0;
    std::vector<Id> open{steps.node(id).in[0]};
    std::set<Id> seen;
    while (!open.empty()) {
      const Id at = open.back();
      open.pop_back();
      if (steps.values.of(at) || !seen.insert(at).second) continue;
      const Node& node = steps.node(at);
      reads += node.op == Op::load && reads_where_used(at) && node.shape == steps.node(matmul).shape;
      if (is_elementwise(node.op)) open.insert(open.end(), node.in.begin(), node.in.end());
    }
    return reads;
  }
  // One thread of the group may release tiles that wgmma has read. For tiles that threads read, one thread of each warp
  // releases them after the others have read.
  void release(Steps& steps, LoopId not_first) {
    const bool by_threads = !shared_.how.computed.empty();
    if (by_threads) push(steps, WarpBarrier{});
    elected(steps, by_threads ? 32 : 128, [&] { push(steps, ArriveEmpty{state_, 1, not_first}); });
  }
  bool is_read_ahead(Id id) const { return lowering::is_read_ahead(shared_.analysis, shared_.how, id); }
  // Loads that are done ahead of the loop, and their indices, come first. With split-K, the CTA of the first partial
  // does what follows the accumulation.
  void tile(Steps& steps, const LowerNodes& lower) {
    const WarpSpecializedGemm& how = shared_.how;
    const auto early = [&](Id id) { return how.reads_ahead && (how.ahead[id] || is_read_ahead(id)); };
    const auto behind = [&](Id id) { return shared_.analysis.number[id] > shared_.analysis.number[how.loop]; };
    const auto late = [&] { lower([&](Id id) { return in_tile(id) && !early(id) && behind(id); }); };
    lower([&](Id id) { return in_tile(id) && early(id); });
    lower([&](Id id) { return in_tile(id) && !early(id) && !behind(id); });
    if (how.split_k == SplitK::none) return late();
    lower_shared_tile(steps, how.matmuls[0], how.split_k, sums_[0], share_, late);
  }
  // The producer does not wait for this: TMA boxes fill other rows. Each consumer group sees the zeros of the other by
  // the time of its turn.
  void clear_rest(Steps& steps) {
    // With stream-K, a CTA has k-iterations of several tiles.
    const bool by_grid = shared_.how.split_k == SplitK::stream_k;
    push(steps, ZeroFillRows{shared_.pipeline,
                             by_grid ? literal(shared_.how.stages) : iterations(steps, shared_.how.loop).count});
    push(steps, ProxyFence{});
    if (shared_.how.consumer_groups == 1) push(steps, Barrier{});
  }

  int ping_pong_ = 0;  // first of the named barriers for the turns of the consumer groups
  BufferId out_[2];
  int parts_ = 0;
  std::vector<ValueId> sums_;
  Fragments fragments_;
  std::vector<PendingWgmma> pending_;  // of the loop, so far
};

}  // namespace

void GemmSchedule::lower(const GraphAnalysis& analysis, const MatmulPlans& matmuls, const Layouts& layouts,
                         const std::set<Id>&, Plan& plan) const {
  WarpSpecializedGemm how = how_;
  // The buffers of stores have the layout of the accumulators.
  const Layout& sums = matmuls.plans.at(how.matmuls[0]).layout;
  std::erase_if(how.tma_tensors, [&](Id store) { return layouts.of[analysis[store].in[0]] != sums; });
  Phase& phase = plan.phases.back();
  MatmulPipeline shared(analysis, how, matmuls.plans, plan);
  phase.schedule.kind = Schedule::Kind::tiles;
  phase.schedule.split_k = how.split_k;
  if (phase.schedule.raster_group) phase.schedule.raster_group = raster_group_of(shared.m, shared.n);
  Role producer{.name = "producer", .first_warp = 0, .warps = 4, .registers = shared.producer_registers()};
  Role consumer{.name = "consumer",
                .first_warp = 4,
                .warps = 4 * how.groups,
                .registers = shared.consumer_registers(),
                .consumer_groups = how.consumer_groups,
                .barrier = plan.allocate_named_barriers(how.consumer_groups)};
  constexpr int all_in_registers = 256;
  lowering::lower(analysis, matmuls.plans, layouts, all_in_registers, {}, {.suffix = "_ahead"}, plan, producer,
                  Producer(shared));
  lowering::lower(analysis, matmuls.plans, layouts, all_in_registers, {}, {}, plan, consumer, Consumer(shared));
  phase.roles.push_back(std::move(producer));
  phase.roles.push_back(std::move(consumer));
  begin_roles(plan);
}

}  // namespace tessera::internal::lowering
