// The roles of a fused matmul.
#include <fmt/format.h>

#include "codegen/analysis/budget.hpp"
#include "codegen/lower/masks.hpp"
#include "codegen/lower/sm90/tma_boxes.hpp"
#include "codegen/lower/sm90/warp_role.hpp"
#include "codegen/schedule/fused_matmul.hpp"
#include "codegen/schedule/wgmma_tiles.hpp"

namespace tessera::internal::lowering {
namespace {

/// The pipeline of a tile: each tile has its own, so that its stage is released as soon as it is read.
struct FusedMatmulPipeline {
  BufferId buffer;
  TensorMapId map;
  PipelineId pipeline;
};

std::vector<FusedMatmulPipeline> make_pipelines(const GraphAnalysis& analysis, const FusedMatmul& fused, Plan& plan) {
  std::vector<FusedMatmulPipeline> pipelines;
  for (const FusedMatmulTile& tile : fused.tiles) {
    const Shape& shape = analysis[tile.load].shape;
    const int number = analysis.number[tile.load];
    Buffer buffer{.label = {.stem = "tile", .number = number},
                  .type = analysis[tile.load].type,
                  .rows = shape[tile.rows],
                  .columns = shape[tile.columns],
                  .stages = tile.stages,
                  .form = SharedForm::panels};
    FusedMatmulPipeline made;
    made.map = tma_tensors_of(analysis, plan, tile.load, tile.rows, buffer, TmaUse::load);
    Pipeline pipeline{.label = {.stem = "pipeline", .number = number},
                      .buffers = {},
                      .stages = tile.stages,
                      .empty_arrivals = fused.groups,
                      .bytes = buffer.stage_bytes(),
                      .of_slice = tile.slice_extent != no_id};
    made.buffer = plan.buffers.add(std::move(buffer));
    pipeline.buffers = {made.buffer};
    made.pipeline = plan.pipelines.add(std::move(pipeline));
    pipelines.push_back(made);
  }
  return pipelines;
}

/// Both roles go from grid tile to grid tile, with a state for each pipeline.
class FusedMatmulRole : public WarpRole {
 public:
  FusedMatmulRole(const GraphAnalysis& analysis, const FusedMatmul& fused,
                  const std::vector<FusedMatmulPipeline>& pipelines, Plan& plan, std::string_view name)
      : WarpRole(fused.matmuls[0].id), analysis_(analysis), fused_(fused), pipelines_(pipelines) {
    for (const FusedMatmulTile& tile : fused.tiles) {
      const FusedMatmulPipeline& pipeline = pipelines[states_.size()];
      Label label{.stem = fmt::format("at_{}", name), .number = analysis.number[tile.load]};
      states_.push_back(plan.states.add({.label = std::move(label), .pipeline = pipeline.pipeline}));
    }
  }

 protected:
  template <class Do>
  void each_tile(bool held, const Do& act) const {
    for (std::size_t i = 0; i < fused_.tiles.size(); ++i)
      if (fused_.tiles[i].held == held) act(i);
  }
  static std::size_t index(const FusedMatmulOperand& operand) { return static_cast<std::size_t>(operand.tile); }
  static bool reads(const FusedMatmulMma& matmul, std::size_t tile) {
    return index(matmul.left) == tile || index(matmul.right) == tile;
  }

  const GraphAnalysis& analysis_;
  const FusedMatmul& fused_;
  const std::vector<FusedMatmulPipeline>& pipelines_;
  std::vector<PipelineStateId> states_;
};

class FusedMatmulProducer final : public FusedMatmulRole {
 public:
  FusedMatmulProducer(const GraphAnalysis& analysis, const FusedMatmul& fused,
                      const std::vector<FusedMatmulPipeline>& pipelines, Plan& plan)
      : FusedMatmulRole(analysis, fused, pipelines, plan, "producer") {}

  bool does(Id id) const override { return fused_.ahead[id] || id == fused_.loop; }
  void whole(Steps& steps, const LowerNodes& lower) override {
    set_registers(steps, fused_.groups > 1 ? of_producer : 0, false);
    elected(steps, 128, [&] {
      tiles(steps, 1, [&] { lower([](Id) { return true; }); });
      if (fused_.runs_on) load_behind_the_last(steps);
    });
  }
  void before_loop(Steps& steps) override {
    each_tile(true, [&](std::size_t tile) { load(steps, tile); });
  }
  void end_iteration(Steps& steps, LoopId) override {
    each_tile(false, [&](std::size_t tile) { load(steps, tile); });
  }

 private:
  void load(Steps& steps, std::size_t tile) const {
    load(steps, tile, [&](int panel) {
      const Buffer& buffer = steps.plan.buffers[pipelines_[tile].buffer];
      return place_of_panel(steps, fused_.loop, fused_.tiles[tile].load, panel, buffer);
    });
  }
  template <class Place>
  void load(Steps& steps, std::size_t tile, const Place& place) const {
    const PipelineStateId at = states_[tile];
    push(steps, WaitEmpty{at});
    push(steps, ArriveExpectTx{at});
    load_panels(steps, pipelines_[tile].map, pipelines_[tile].buffer, at, place);
    push(steps, AdvanceStage{at, literal(1)});
  }
  // After the last grid tile, too, the second matmul is issued together with a next first matmul, on dummy tiles: for a
  // matmul behind a condition ptxas has no registers.
  void load_behind_the_last(Steps& steps) const {
    for (const bool held : {true, false})
      each_tile(held, [&](std::size_t tile) {
        if (!reads(fused_.matmuls[0], tile)) return;
        const std::size_t axes = analysis_.access(fused_.tiles[tile].load).axes.size();
        load(steps, tile, [&](int) { return std::vector<TileCoordinate>(axes, {literal(0)}); });
      });
  }
};

class FusedMatmulConsumer final : public FusedMatmulRole {
 public:
  FusedMatmulConsumer(const GraphAnalysis& analysis, const FusedMatmul& fused, const MatmulPlans& matmuls,
                      const std::vector<FusedMatmulPipeline>& pipelines, Plan& plan, int registers)
      : FusedMatmulRole(analysis, fused, pipelines, plan, "consumer"), matmuls_(matmuls), registers_(registers) {
    if (is_ping_pong()) turns_ = plan.allocate_named_barriers(fused.groups);
    for (const FusedMatmulMma& matmul : fused.matmuls) {
      const Id left = analysis[matmul.id].in[0];
      const auto multiplies = [&](Id user) { return analysis[user].op == Op::mma && analysis[user].in[0] == left; };
      // A value from before the loop stays in its registers.
      const bool anew = analysis[left].region == analysis[matmul.id].region;
      if (matmul.left.tile < 0 && anew && is_elementwise(analysis[left].op) &&
          std::ranges::all_of(analysis.users[left], multiplies))
        on_the_way_.insert(left);
    }
  }

  // Left operands are computed in wgmma's layout, where that is possible.
  bool does(Id id) const override { return !on_the_way_.contains(id); }
  void whole(Steps& steps, const LowerNodes& lower) override {
    set_registers(steps, registers_, true);
    if (is_ping_pong()) push(steps, OrderedBarrier{OrderedBarrier::Kind::begin, turns_});
    if (fused_.runs_on) begin(steps);
    tiles(steps, 1, [&] {
      lower([](Id) { return true; });
      if (fused_.runs_on) finish(steps, fused_.matmuls[0], next_, 0);
    });
    if (fused_.runs_on) give_back(steps, Held::of_scores);
  }
  void before_loop(Steps& steps) override {
    if (!fused_.runs_on) wait_for(steps, Held::of_scores);
    wait_for(steps, Held::of_sums);
    if (!fused_.overlaps) return;
    open_.left = add_left(steps, fused_.matmuls[1].id);
    steps.plan.storage(open_.left).changes = true;
    push(steps, DeclareAccumulator{open_.left});
  }
  void after_loop(Steps& steps) override {
    // The first matmul is done with its held tiles: those of the next grid tile may arrive.
    give_back(steps, Held::of_scores);
    if (fused_.runs_on) {
      in_turn(steps, is_ping_pong(), [&] {
        start(steps, fused_.matmuls[1], open_);
        wait_for(steps, Held::of_scores);
        start(steps, fused_.matmuls[0], next_);
      });
      finish(steps, fused_.matmuls[1], open_, 1);
    } else if (fused_.overlaps) {
      const auto last = [&] {
        start(steps, fused_.matmuls[1], open_);
        finish(steps, fused_.matmuls[1], open_, 0);
      };
      if (!some_)
        last();
      else {
        Branch some{.condition = element_of(steps.plan, some_, Layout(0)), .body = {}};
        steps.within(some.body, last);
        push(steps, std::move(some));
      }
    }
    give_back(steps, Held::of_sums);
  }

  // A mask leaves out elements in a few tiles only: elements are tested only where it is false for some.
  bool compute(Steps& steps, Id id) override {
    const Node& at = analysis_[id];
    if (at.op != Op::select || analysis_[at.in[1]].shape != at.shape || !is_number(at.in[2])) return false;
    const std::optional<ValueId> fails = fails_somewhere(steps, at.in[0], id);
    if (!fails) return false;
    const ValueId out = unmasked(steps, id);
    Branch some{.condition = element_of(steps.plan, *fails, Layout(0)), .body = {}};
    steps.within(some.body, [&] {
      SweepBuilder builder(steps, at.shape, steps.layouts.of[id], id);
      builder.give(at.in[1], out);
      steps.push(id, Compute{.out = out, .sweep = builder.express(id).take()});
    });
    push(steps, std::move(some));
    return true;
  }
  std::optional<ValueId> first_apart(Steps& steps, const Operand& count) override {
    if (!fused_.overlaps) return {};
    if (fused_.has_iteration) return ValueId{};
    const Term some{Op::greater, ElementType::pred, ElementType::i32, {count, literal(0)}};
    return some_ = steps.number(fused_.loop, steps.values.label(fused_.loop, "some"), ElementType::pred, some);
  }
  bool mma(Steps& steps, Id id, LoopId loop) override {
    const FusedMatmulMma& matmul = *std::ranges::find(fused_.matmuls, id, &FusedMatmulMma::id);
    Wgmma wgmma = wgmma_of(matmul);
    if (!fused_.overlaps) {
      if (matmul.left.tile < 0) wgmma.left = left_operand(steps, id, {});
      wgmma.out = sums(steps, id);
      fence(steps, wgmma);
      clear_beyond(steps, matmul);
      start(steps, matmul, wgmma);
      finish(steps, matmul, wgmma, 0);
    } else if (&matmul == &fused_.matmuls[0]) {
      if (!loop && fused_.runs_on) return steps.values.set(id, next_.out), true;
      wgmma.out = sums(steps, id);
      fence(steps, wgmma);
      clear_beyond(steps, matmul);
      in_turn(steps, loop && is_ping_pong(), [&] {
        start(steps, matmul, wgmma);
        if (loop) start(steps, fused_.matmuls[1], open_);
      });
      finish(steps, matmul, wgmma, loop ? 1 : 0);
    } else {
      if (loop) finish(steps, matmul, open_, 0);
      wgmma.out = sums(steps, id);
      wgmma.left = left_operand(steps, id, open_.left);
      fence(steps, open_ = wgmma);
      clear_beyond(steps, matmul);
    }
    return true;
  }

 private:
  // One warp group multiplies while the others process their accumulators.
  bool is_ping_pong() const { return fused_.overlaps && fused_.groups > 1; }
  template <class Inside>
  void in_turn(Steps& steps, bool turns, const Inside& inside) const {
    if (turns) push(steps, OrderedBarrier{OrderedBarrier::Kind::wait, turns_});
    inside();
    if (turns) push(steps, OrderedBarrier{OrderedBarrier::Kind::pass, turns_});
  }
  // The first matmul of the first grid tile; those of the others are issued during the grid tile before.
  void begin(Steps& steps) {
    const Id scores = fused_.matmuls[0].id;
    next_ = wgmma_of(fused_.matmuls[0]);
    next_.out = steps.values.add(steps.values.label(scores, "mma", "_first"), scores, steps.layouts.of[scores]);
    steps.plan.storage(next_.out).changes = true;
    push(steps, DeclareAccumulator{next_.out});
    wait_for(steps, Held::of_scores);
    start(steps, fused_.matmuls[0], next_);
    finish(steps, fused_.matmuls[0], next_, 0);
  }
  // Tiles that stay for all k-iterations: of_scores are those that the first matmul reads, of_sums the others.
  enum class Held : std::uint8_t { of_scores, of_sums };
  template <class Do>
  void each_held(Held which, const Do& act) const {
    each_tile(true, [&](std::size_t tile) {
      if (reads(fused_.matmuls[0], tile) == (which == Held::of_scores)) act(tile);
    });
  }
  void wait_for(Steps& steps, Held which) const {
    each_held(which, [&](std::size_t tile) { push(steps, WaitFull{states_[tile]}); });
  }
  void give_back(Steps& steps, Held which) const {
    each_held(which, [&](std::size_t tile) { give_back(steps, tile); });
  }
  Wgmma wgmma_of(const FusedMatmulMma& matmul) const {
    const Matmul& plan = matmuls_.plans.at(matmul.id).matmul;
    const std::size_t right = index(matmul.right);
    Wgmma wgmma{.out = {},
                .a = {},
                .b = pipelines_[right].buffer,
                .a_state = {},
                .b_state = states_[right],
                .type = plan.type,
                .m = plan.m,
                .n = plan.n,
                .k = plan.k,
                .b_k_major = matmul.right.k_major,
                .overwrites = is_zeros(analysis_, analysis_[matmul.id].in[2])};
    if (matmul.left.tile < 0) return wgmma;
    const std::size_t left = index(matmul.left);
    wgmma.a = pipelines_[left].buffer;
    wgmma.a_state = states_[left];
    wgmma.a_k_major = matmul.left.k_major;
    return wgmma;
  }
  // Fences the registers that threads wrote.
  void fence(Steps& steps, const Wgmma& wgmma) const {
    if (wgmma.left) push(steps, RegisterFence{wgmma.left});
    if (!wgmma.overwrites) push(steps, RegisterFence{wgmma.out});
  }
  void start(Steps& steps, const FusedMatmulMma& matmul, const Wgmma& wgmma) const {
    each_read(matmul, [&](std::size_t tile, std::span<const Id> users) {
      if (users.front() == matmul.id && fused_.tiles[tile].slice_extent == no_id) push(steps, WaitFull{states_[tile]});
    });
    push(steps, WgmmaFence{});
    steps.push(matmul.id, wgmma);
    push(steps, WgmmaCommit{});
  }
  // Zero-fills rows beyond a slice, in the few tiles that have some. It is outside of ping-pong turns, since all warp
  // groups arrive at the barrier.
  void clear_beyond(Steps& steps, const FusedMatmulMma& matmul) const {
    each_read(matmul, [&](std::size_t tile, std::span<const Id> users) {
      if (users.front() != matmul.id || fused_.tiles[tile].slice_extent == no_id) return;
      push(steps, WaitFull{states_[tile]});
      const ValueId filled = filled_rows(steps, fused_.tiles[tile]);
      const Operand rows = element_of(steps.plan, filled, Layout(0));
      const Id load = fused_.tiles[tile].load;
      const Term ends{Op::less, ElementType::pred, ElementType::i32, {rows, literal(rows_of(tile))}};
      const ValueId some = steps.number(load, steps.values.label(load, "ends"), ElementType::pred, ends);
      Branch branch{.condition = element_of(steps.plan, some, Layout(0)), .body = {}};
      steps.within(branch.body, [&] {
        push(steps, ZeroFillPastEnd{states_[tile], pipelines_[tile].buffer, rows});
        push(steps, ProxyFence{});
        push(steps, Barrier{});
      });
      push(steps, std::move(branch));
    });
  }
  int rows_of(std::size_t tile) const {
    const FusedMatmulTile& of = fused_.tiles[tile];
    return analysis_[of.load].shape[of.rows];
  }
  // The number of the tile's rows that are in its slice; computed in 64 bits, since the slice may end anywhere.
  ValueId filled_rows(Steps& steps, const FusedMatmulTile& tile) const {
    const GraphAccess access = analysis_.access(tile.load);
    const GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(tile.rows)];
    Expression expression;
    const auto term = [&](Op op, ElementType type, ElementType of, std::vector<Operand> in) {
      expression.terms.push_back({op, type, of, std::move(in)});
      return Operand{.kind = Operand::Kind::term, .index = static_cast<int>(expression.terms.size()) - 1};
    };
    const auto wide = [&](Id id) { return term(Op::cast, ElementType::i64, ElementType::i32, {steps.scalar(id)}); };
    const auto count = [&](Op op, const Operand& a, std::int64_t b) {
      return term(op, ElementType::i64, ElementType::i64, {a, literal(b)});
    };
    const Operand end = wide(tile.slice_extent), start = count(Op::mul, wide(axis.index), axis.extent);
    const Operand left = term(Op::sub, ElementType::i64, ElementType::i64, {end, start});
    term(Op::cast, ElementType::i32, ElementType::i64, {count(Op::minimum, count(Op::maximum, left, 0), axis.extent)});
    return steps.number(tile.load, steps.values.label(tile.load, "filled"), ElementType::i32, std::move(expression));
  }
  // Waits for the matmul, but not for `pending` matmuls that were issued after it.
  void finish(Steps& steps, const FusedMatmulMma& matmul, const Wgmma& wgmma, int pending) const {
    push(steps, WgmmaWait{pending});
    if (wgmma.left) push(steps, RegisterFence{wgmma.left});
    push(steps, RegisterFence{wgmma.out});
    each_read(matmul, [&](std::size_t tile, std::span<const Id> users) {
      if (users.back() == matmul.id) give_back(steps, tile);
    });
  }
  // Tiles of this k-iteration that it reads, each with all matmuls that read it.
  template <class Do>
  void each_read(const FusedMatmulMma& matmul, const Do& act) const {
    each_tile(false, [&](std::size_t tile) {
      std::vector<Id> users;
      for (const FusedMatmulMma& one : fused_.matmuls)
        if (reads(one, tile)) users.push_back(one.id);
      if (reads(matmul, tile)) act(tile, users);
    });
  }
  // One thread of a warp group may release tiles that wgmma has read.
  void give_back(Steps& steps, std::size_t tile) const {
    elected(steps, 128, [&] { push(steps, ArriveEmpty{states_[tile], 0, {}}); });
    push(steps, AdvanceStage{states_[tile], literal(1)});
  }

  bool is_number(Id id) const {
    while (analysis_[id].op == Op::broadcast) id = analysis_[id].in[0];
    return analysis_[id].op == Op::constant;
  }
  // The select's value where its condition is true; in the accumulators of a matmul, if they have no other use.
  ValueId unmasked(Steps& steps, Id id) const {
    const Id from = analysis_[id].in[1];
    const Layout& layout = steps.layouts.of[id];
    if (analysis_[from].op == Op::mma && analysis_[from].region == analysis_[id].region &&
        analysis_.users[from].size() == 1 && steps.layouts.of[from] == layout)
      return steps.values.set(id, steps.values.of(from));
    const ValueId out = steps.values.add(id);
    steps.plan.storage(out).changes = true;
    Sweep sweep = SweepBuilder(steps, analysis_[id].shape, layout, id).express(from).take();
    steps.push(id, Compute{.out = out, .sweep = std::move(sweep)});
    return out;
  }

  // Elements are packed in pairs.
  ValueId add_left(Steps& steps, Id matmul) const {
    const Id operand = analysis_[matmul].in[0];
    const ValueId left =
        steps.values.add(steps.values.label(matmul, "left"), operand,
                         wgmma_operand_layout(analysis_[operand].shape, fused_.groups, analysis_[operand].type));
    steps.plan.storage(left).pairs = true;
    return left;
  }
  ValueId left_operand(Steps& steps, Id matmul, ValueId out) const {
    const Id operand = analysis_[matmul].in[0], root = on_the_way_.contains(operand) ? operand : no_id;
    if (!out) out = add_left(steps, matmul);
    const Value& left = steps.plan.values[out];
    Sweep sweep = SweepBuilder(steps, left.shape, left.layout, root).express(operand).take();
    leave_rounding_to_memory(sweep.expression);
    steps.push(operand, Compute{.out = out, .sweep = std::move(sweep)});
    return out;
  }
  // The accumulators, which start from the matmul's addend.
  ValueId sums(Steps& steps, Id id) const {
    const Layout layout = steps.layouts.of[id];
    const Id carried = carried_to(steps, id);
    const ValueId out = carried != no_id ? steps.values.of(carried) : steps.values.add(id);
    steps.plan.storage(out).changes = true;
    if (is_zeros(analysis_, analysis_[id].in[2])) {
      push(steps, DeclareAccumulator{out});
    } else if (analysis_[id].in[2] != carried) {
      Sweep sweep = SweepBuilder(steps, analysis_[id].shape, layout, id).express(analysis_[id].in[2]).take();
      steps.push(id, Compute{.out = out, .sweep = std::move(sweep)});
    }
    return steps.values.set(id, out);
  }
  // The loop's carried value that this matmul becomes, if nothing else needs its old value.
  Id carried_to(const Steps& steps, Id id) const {
    const Region& body = analysis_.graph.regions[analysis_[id].region];
    const auto yield = std::ranges::find(body.yields, id);
    if (yield == body.yields.end()) return no_id;
    const Id argument = body.arguments[static_cast<std::size_t>(yield - body.yields.begin()) + 1];
    const auto is_part = [&](Id user) { return user == id || steps.fusion.root[user] == id; };
    const bool same = steps.layouts.of[argument] == steps.layouts.of[id];
    return same && std::ranges::all_of(analysis_.users[argument], is_part) ? argument : no_id;
  }

  const MatmulPlans& matmuls_;
  const int registers_;
  int turns_ = 0;  // first of the named barriers for the ping-pong turns of warp groups
  std::set<Id> on_the_way_;
  // where k-iterations overlap: the second matmul of the k-iteration before, and whether there is a k-iteration
  Wgmma open_;
  ValueId some_;
  Wgmma next_;  // where grid tiles overlap: the first matmul of the next one
};

// Grid tiles that differ only along the first axis read the same tiles, as queries read the same keys. So they run
// together, in sections small enough for the L2 cache (full attention of 16 x 1024 x 16 x 128 takes an H200 0.308 ms in
// sections of 16, and 0.346 in one). Where the number of k-iterations differs along that axis, as with a causal mask,
// the longest come first, in sections of which all multiprocessors have equal shares (causal, 8 x 2048 x 16 x 128:
// 0.255 ms in sections of 33, 0.302 in one).
void order_blocks(const GraphAnalysis& analysis, const FusedMatmul& fused, Phase& phase) {
  constexpr int of_cache = 16;
  const std::vector<char> launch = analysis.uniform_values([](Id, RegionId) { return false; });
  const bool differ = launch[analysis[fused.loop].in[0]] == 0;
  phase.schedule.raster_group = 0;
  phase.schedule.snake_order = differ;
  if (phase.axes > 1 && !differ) phase.schedule.l2_group = of_cache;
}

}  // namespace

void FusedMatmulSchedule::lower(const GraphAnalysis& analysis, const MatmulPlans& matmuls, const Layouts& layouts,
                                const std::set<Id>&, Plan& plan) const {
  const FusedMatmul& fused = fused_;
  Phase& phase = plan.phases.back();
  phase.schedule.kind = Schedule::Kind::tiles;
  order_blocks(analysis, fused, phase);
  const std::vector<FusedMatmulPipeline> pipelines = make_pipelines(analysis, fused, plan);
  // With one warp group besides the producer, threads have the maximum of registers anyway.
  const bool sets = fused.groups > 1;
  const Budget budget(plan.target, 128 * (fused.groups + 1), true);
  Role producer{.name = "producer", .first_warp = 0, .warps = 4, .registers = sets ? of_producer : 0};
  Role consumer{.name = "consumer",
                .first_warp = 4,
                .warps = 4 * fused.groups,
                .registers = sets ? budget.taken(fused.groups, of_producer) : 0,
                .barrier = plan.allocate_named_barriers(1)};
  constexpr int all_in_registers = 256;
  lowering::lower(analysis, matmuls.plans, layouts, all_in_registers, {}, {.suffix = "_ahead"}, plan, producer,
                  FusedMatmulProducer(analysis, fused, pipelines, plan));
  lowering::lower(analysis, matmuls.plans, layouts, all_in_registers, {}, {}, plan, consumer,
                  FusedMatmulConsumer(analysis, fused, matmuls, pipelines, plan, consumer.registers));
  phase.roles.push_back(std::move(producer));
  phase.roles.push_back(std::move(consumer));
  begin_roles(plan);
}

}  // namespace tessera::internal::lowering
