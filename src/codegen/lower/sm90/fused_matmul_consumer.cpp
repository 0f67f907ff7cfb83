// A consumer role whose matmuls feed one another, as in attention.
#include "codegen/lower/masks.hpp"
#include "codegen/lower/sm90/consumer.hpp"
#include "codegen/schedule/wgmma_tiles.hpp"

namespace tessera::internal::lowering {
namespace {

class FusedMatmulConsumer : ConsumerRole {
 public:
  FusedMatmulConsumer(const MatmulPipelines& pipelines, GraphLowering& graph) : ConsumerRole(pipelines, graph) {
    if (is_ping_pong()) turns_ = steps_.plan.allocate_named_barriers(how_.groups);
  }

  void lower() {
    set_registers(pipelines_.consumer_registers(), true);
    if (is_ping_pong()) push(OrderedBarrier{OrderedBarrier::Kind::begin, turns_});
    if (grid_tiles_overlap()) begin();
    grid_tiles(1, [&] {
      for (const Id id : analysis_.order[0])
        if (graph_.does(id)) id == how_.loop ? loop() : node(id);
      if (grid_tiles_overlap()) finish(how_.matmuls[0], next_, 0);
    });
    if (grid_tiles_overlap()) give_back(Held::of_scores);
  }

 private:
  bool grid_tiles_overlap() const { return how_.overlap == MatmulOverlap::grid_tiles; }
  // One warp group multiplies while the others process their accumulators.
  bool is_ping_pong() const { return how_.overlaps() && how_.groups > 1; }
  template <class Inside>
  void in_turn(bool turns, const Inside& inside) const {
    if (turns) push(OrderedBarrier{OrderedBarrier::Kind::wait, turns_});
    inside();
    if (turns) push(OrderedBarrier{OrderedBarrier::Kind::pass, turns_});
  }

  void loop() {
    std::vector<ValueId> carried = graph_.carry(how_.loop);
    before_loop();
    const LoopId counter = graph_.count(how_.loop);
    Iterations range = graph_.iterations(how_.loop);
    const auto iteration = [&](LoopId loop) {
      k_iteration([&](Id id) { matmul(id, loop); }, [&](Id id) { node(id); });
      graph_.move_on(how_.loop, carried);
    };
    if (how_.overlaps()) {
      if (!how_.has_iteration) {
        const Term some{Op::greater, ElementType::pred, ElementType::i32, {range.count, literal(0)}};
        some_ = steps_.number(how_.loop, steps_.values.label(how_.loop, "some"), ElementType::pred, some);
      }
      range = graph_.peel_first(how_.loop, some_, range.count, [&] { iteration({}); });
    }
    graph_.iterate(how_.loop, counter, range, [&] { iteration(counter); });
    after_loop();
    graph_.end_loop(how_.loop, std::move(carried));
  }
  void before_loop() {
    if (!grid_tiles_overlap()) wait_for(Held::of_scores);
    wait_for(Held::of_sums);
    if (!how_.overlaps()) return;
    open_.left = add_left(how_.matmuls[1].id);
    steps_.plan.storage(open_.left).changes = true;
    push(DeclareAccumulator{open_.left});
  }
  void after_loop() {
    // The first matmul is done with its held tiles: those of the next grid tile may arrive.
    give_back(Held::of_scores);
    if (grid_tiles_overlap()) {
      in_turn(is_ping_pong(), [&] {
        start(how_.matmuls[1], open_);
        wait_for(Held::of_scores);
        start(how_.matmuls[0], next_);
      });
      finish(how_.matmuls[1], open_, 1);
    } else if (how_.overlaps()) {
      const auto last = [&] {
        start(how_.matmuls[1], open_);
        finish(how_.matmuls[1], open_, 0);
      };
      if (!some_)
        last();
      else {
        Branch some{.condition = element_of(steps_.plan, some_, Layout(0)), .body = {}};
        steps_.within(some.body, last);
        push(std::move(some));
      }
    }
    give_back(Held::of_sums);
  }

  void node(Id id) {
    if (!masked(id)) graph_.node(id);
  }
  // A mask leaves out elements in a few tiles only: elements are tested only where it is false for some.
  bool masked(Id id) {
    const Node& at = analysis_[id];
    if (steps_.fusion.root[id] != id || steps_.fusion.absorbed[id]) return false;
    if (at.op != Op::select || analysis_[at.in[1]].shape != at.shape || !is_number(at.in[2])) return false;
    const std::optional<ValueId> fails = fails_somewhere(steps_, at.in[0], id);
    if (!fails) return false;
    const ValueId out = unmasked(id);
    Branch some{.condition = element_of(steps_.plan, *fails, Layout(0)), .body = {}};
    steps_.within(some.body, [&] {
      SweepBuilder builder(steps_, at.shape, steps_.layouts.of[id], id);
      builder.give(at.in[1], out);
      steps_.push(id, Compute{.out = out, .sweep = builder.express(id).take()});
    });
    push(std::move(some));
    return true;
  }
  // The LoopId is empty in the peeled iteration.
  void matmul(Id id, LoopId loop) {
    const WgmmaOperands& matmul = matmul_of(id);
    Wgmma wgmma = wgmma_of(matmul);
    wgmma.overwrites = is_zeros(analysis_, analysis_[id].in[2]);
    if (!how_.overlaps()) {
      if (matmul.left.tile < 0) wgmma.left = left_operand(id, {});
      wgmma.out = sums(id);
      fence(wgmma);
      clear_beyond(matmul);
      start(matmul, wgmma);
      finish(matmul, wgmma, 0);
    } else if (&matmul == &how_.matmuls[0]) {
      if (!loop && grid_tiles_overlap()) return void(steps_.values.set(id, next_.out));
      wgmma.out = sums(id);
      fence(wgmma);
      clear_beyond(matmul);
      in_turn(loop && is_ping_pong(), [&] {
        start(matmul, wgmma);
        if (loop) start(how_.matmuls[1], open_);
      });
      finish(matmul, wgmma, loop ? 1 : 0);
    } else {
      if (loop) finish(matmul, open_, 0);
      wgmma.out = sums(id);
      wgmma.left = left_operand(id, open_.left);
      fence(open_ = wgmma);
      clear_beyond(matmul);
    }
  }

  // The first matmul of the first grid tile; those of the others are issued during the grid tile before.
  void begin() {
    const Id scores = how_.matmuls[0].id;
    next_ = wgmma_of(how_.matmuls[0]);
    next_.overwrites = true;
    next_.out = steps_.values.add(steps_.values.label(scores, "mma", "_first"), scores, steps_.layouts.of[scores]);
    steps_.plan.storage(next_.out).changes = true;
    push(DeclareAccumulator{next_.out});
    wait_for(Held::of_scores);
    start(how_.matmuls[0], next_);
    finish(how_.matmuls[0], next_, 0);
  }
  // Tiles that stay for all k-iterations: of_scores are those that the first matmul reads, of_sums the others.
  enum class Held : std::uint8_t { of_scores, of_sums };
  template <class Do>
  void each_held(Held which, const Do& act) const {
    each_tile(true, [&](int tile) {
      if (reads(how_.matmuls[0], tile) == (which == Held::of_scores)) act(tile);
    });
  }
  void wait_for(Held which) const {
    each_held(which, [&](int tile) { push(WaitFull{state_of(tile)}); });
  }
  void give_back(Held which) const {
    each_held(which, [&](int tile) { give_back(tile); });
  }
  // Fences the registers that threads wrote.
  void fence(const Wgmma& wgmma) const {
    if (wgmma.left) push(RegisterFence{wgmma.left});
    if (!wgmma.overwrites) push(RegisterFence{wgmma.out});
  }
  void start(const WgmmaOperands& matmul, const Wgmma& wgmma) const {
    each_read(matmul, [&](int tile, std::span<const Id> users) {
      if (users.front() == matmul.id && pipelines_.produced(tile).slice_extent == no_id) push(WaitFull{state_of(tile)});
    });
    push(WgmmaFence{});
    steps_.push(matmul.id, wgmma);
    push(WgmmaCommit{});
  }
  // Zero-fills rows beyond a slice, in the few tiles that have some. It is outside of ping-pong turns, since all warp
  // groups arrive at the barrier.
  void clear_beyond(const WgmmaOperands& matmul) const {
    each_read(matmul, [&](int tile, std::span<const Id> users) {
      if (users.front() != matmul.id || pipelines_.produced(tile).slice_extent == no_id) return;
      push(WaitFull{state_of(tile)});
      const ProducedTile& of = pipelines_.produced(tile);
      const Id load = of.load;
      const Operand rows = element_of(steps_.plan, filled_rows(of), Layout(0));
      const Term ends{
          Op::less, ElementType::pred, ElementType::i32, {rows, literal(analysis_[load].shape[of.rows[0]])}};
      const ValueId some = steps_.number(load, steps_.values.label(load, "ends"), ElementType::pred, ends);
      Branch branch{.condition = element_of(steps_.plan, some, Layout(0)), .body = {}};
      steps_.within(branch.body, [&] {
        push(ZeroFillPastEnd{state_of(tile), pipelines_.tiles[static_cast<std::size_t>(tile)].buffer, rows});
        push(ProxyFence{});
        push(Barrier{});
      });
      push(std::move(branch));
    });
  }
  // The number of the tile's rows that are in its slice; computed in 64 bits, since the slice may end anywhere.
  ValueId filled_rows(const ProducedTile& tile) const {
    const GraphAccess access = analysis_.access(tile.load);
    const GraphAccess::Axis& axis = access.axes[static_cast<std::size_t>(tile.rows[0])];
    Expression expression;
    const auto term = [&](Op op, ElementType type, ElementType of, std::vector<Operand> in) {
      expression.terms.push_back({op, type, of, std::move(in)});
      return Operand{.kind = Operand::Kind::term, .index = static_cast<int>(expression.terms.size()) - 1};
    };
    const auto wide = [&](Id id) { return term(Op::cast, ElementType::i64, ElementType::i32, {steps_.scalar(id)}); };
    const auto count = [&](Op op, const Operand& a, std::int64_t b) {
      return term(op, ElementType::i64, ElementType::i64, {a, literal(b)});
    };
    const Operand end = wide(tile.slice_extent), start = count(Op::mul, wide(axis.index), axis.extent);
    const Operand left = term(Op::sub, ElementType::i64, ElementType::i64, {end, start});
    term(Op::cast, ElementType::i32, ElementType::i64, {count(Op::minimum, count(Op::maximum, left, 0), axis.extent)});
    return steps_.number(tile.load, steps_.values.label(tile.load, "filled"), ElementType::i32, std::move(expression));
  }
  // Waits for the matmul, but not for `pending` matmuls that were issued after it.
  void finish(const WgmmaOperands& matmul, const Wgmma& wgmma, int pending) const {
    push(WgmmaWait{pending});
    if (wgmma.left) push(RegisterFence{wgmma.left});
    push(RegisterFence{wgmma.out});
    each_read(matmul, [&](int tile, std::span<const Id> users) {
      if (users.back() == matmul.id) give_back(tile);
    });
  }
  static bool reads(const WgmmaOperands& matmul, int tile) {
    return matmul.left.tile == tile || matmul.right.tile == tile;
  }
  template <class Do>
  void each_tile(bool held, const Do& act) const {
    for (const TilePipeline& pipeline : how_.pipelines)
      if (pipeline.held == held) act(pipeline.tiles[0]);
  }
  // Tiles of this k-iteration that it reads, each with all matmuls that read it.
  template <class Do>
  void each_read(const WgmmaOperands& matmul, const Do& act) const {
    each_tile(false, [&](int tile) {
      std::vector<Id> users;
      for (const WgmmaOperands& one : how_.matmuls)
        if (reads(one, tile)) users.push_back(one.id);
      if (reads(matmul, tile)) act(tile, users);
    });
  }
  // One thread of a warp group may release tiles that wgmma has read.
  void give_back(int tile) const {
    elected(128, [&] { push(ArriveEmpty{state_of(tile), 0, {}}); });
    push(AdvanceStage{state_of(tile), literal(1)});
  }

  bool is_number(Id id) const {
    while (analysis_[id].op == Op::broadcast) id = analysis_[id].in[0];
    return analysis_[id].op == Op::constant;
  }
  // The select's value where its condition is true; in the accumulators of a matmul, if they have no other use.
  ValueId unmasked(Id id) const {
    const Id from = analysis_[id].in[1];
    const Layout& layout = steps_.layouts.of[id];
    if (analysis_[from].op == Op::mma && analysis_[from].region == analysis_[id].region &&
        analysis_.users[from].size() == 1 && steps_.layouts.of[from] == layout)
      return steps_.values.set(id, steps_.values.of(from));
    const ValueId out = steps_.values.add(id);
    steps_.plan.storage(out).changes = true;
    Sweep sweep = SweepBuilder(steps_, analysis_[id].shape, layout, id).express(from).take();
    steps_.push(id, Compute{.out = out, .sweep = std::move(sweep)});
    return out;
  }

  // Elements are packed in pairs.
  ValueId add_left(Id matmul) const {
    const Id operand = analysis_[matmul].in[0];
    const ValueId left =
        steps_.values.add(steps_.values.label(matmul, "left"), operand,
                          wgmma_operand_layout(analysis_[operand].shape, how_.groups, analysis_[operand].type));
    steps_.plan.storage(left).packed = 2;
    return left;
  }
  ValueId left_operand(Id matmul, ValueId out) const {
    const Id operand = analysis_[matmul].in[0], root = graph_.does(operand) ? no_id : operand;
    if (!out) out = add_left(matmul);
    const Value& left = steps_.plan.values[out];
    Sweep sweep = SweepBuilder(steps_, left.shape, left.layout, root).express(operand).take();
    leave_rounding_to_memory(sweep.expression);
    steps_.push(operand, Compute{.out = out, .sweep = std::move(sweep)});
    return out;
  }
  // The accumulators, which start from the matmul's addend.
  ValueId sums(Id id) const {
    const Layout layout = steps_.layouts.of[id];
    const Id carried = carried_to(id);
    const ValueId out = carried != no_id ? steps_.values.of(carried) : steps_.values.add(id);
    steps_.plan.storage(out).changes = true;
    if (is_zeros(analysis_, analysis_[id].in[2])) {
      push(DeclareAccumulator{out});
    } else if (analysis_[id].in[2] != carried) {
      Sweep sweep = SweepBuilder(steps_, analysis_[id].shape, layout, id).express(analysis_[id].in[2]).take();
      steps_.push(id, Compute{.out = out, .sweep = std::move(sweep)});
    }
    return steps_.values.set(id, out);
  }
  // The loop's carried value that this matmul becomes, if nothing else needs its old value.
  Id carried_to(Id id) const {
    const Region& body = analysis_.graph.regions[analysis_[id].region];
    const auto yield = std::ranges::find(body.yields, id);
    if (yield == body.yields.end()) return no_id;
    const Id argument = body.arguments[static_cast<std::size_t>(yield - body.yields.begin()) + 1];
    const auto is_part = [&](Id user) { return user == id || steps_.fusion.root[user] == id; };
    const bool same = steps_.layouts.of[argument] == steps_.layouts.of[id];
    return same && std::ranges::all_of(analysis_.users[argument], is_part) ? argument : no_id;
  }

  int turns_ = 0;  // first of the named barriers for the ping-pong turns of warp groups
  // where k-iterations overlap: the second matmul of the k-iteration before, and whether there is a k-iteration
  Wgmma open_;
  ValueId some_;
  Wgmma next_;  // where grid tiles overlap: the first matmul of the next one
};

}  // namespace

void lower_fused_matmul_consumer(const MatmulPipelines& pipelines, GraphLowering& graph) {
  FusedMatmulConsumer(pipelines, graph).lower();
}

}  // namespace tessera::internal::lowering
