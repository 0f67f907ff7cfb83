// A consumer role whose matmuls only add to accumulators, as in a product of two matrices.
#include <fmt/format.h>

#include "codegen/lower/lower_fragments.hpp"
#include "codegen/lower/sm90/consumer.hpp"
#include "codegen/lower/sm90/lower_split_k.hpp"
#include "codegen/lower/sm90/promoted_sums.hpp"
#include "codegen/lower/sm90/tma_stores.hpp"

namespace tessera::internal::lowering {
namespace {

class AccumulatingConsumer : ConsumerRole {
 public:
  AccumulatingConsumer(const MatmulPipelines& pipelines, GraphLowering& graph)
      : ConsumerRole(pipelines, graph),
        fragments_(how_.computed, staged_tiles(pipelines), how_.groups, how_.row_order,
                   how_.promotes() ? PromotedSums::pieces : FragmentPieces{}),
        promoted_(pipelines, fragments_, steps_),
        stores_(pipelines, graph) {
    if (takes_turns()) turns_ = steps_.plan.allocate_named_barriers(how_.consumer_groups);
  }

  void lower() {
    set_registers(pipelines_.consumer_registers(), true);
    launch_numbers();
    if (pipelines_.is_clipped()) clear_rest();
    if (takes_turns()) {
      // The second consumer group starts with the second grid tile: it skips the first tile's stages, and gives the
      // first group the first turn.
      IfConsumerGroup second{.consumer_group = 1, .body = {}};
      steps_.within(second.body, [&] {
        pass_turn();
        skip_stages_of_others();
      });
      push(std::move(second));
    }
    grid_tiles(how_.consumer_groups, [&] { tile(); });
    stores_.wait();
    end_role();
  }

 private:
  bool takes_turns() const { return how_.consumer_groups > 1; }
  PipelineStateId state() const { return states_[0]; }

  static std::map<Id, StagedTile> staged_tiles(const MatmulPipelines& pipelines) {
    std::map<Id, StagedTile> tiles;
    for (const auto& [node, operand] : pipelines.how.computed_tiles)
      tiles[node] = {.buffer = pipelines.tile(operand).buffer, .transposed = !operand.k_major};
    return tiles;
  }

  // Loads that are done ahead of the loop, and their indices, come first; beside promoted sums there are no registers
  // for them, so that they are done ahead of the stores. With split-K, the CTA of the first partial does what follows
  // the accumulation.
  void tile() {
    sums_.clear();
    const auto early = [&](Id id) {
      return how_.reads_ahead && (how_.ahead[id] || is_read_ahead(analysis_, how_, id));
    };
    const auto in_tile = [&](Id id) { return !how_.launch[id]; };
    const auto waits = [&](Id id) { return how_.promotes() && is_read_ahead(analysis_, how_, id); };
    const auto behind = [&](Id id) { return analysis_.number[id] > analysis_.number[how_.loop]; };
    nodes([&](Id id) { return in_tile(id) && early(id) && !waits(id); });
    nodes([&](Id id) { return in_tile(id) && !early(id) && !behind(id) && id != how_.loop; });
    loop();
    nodes([&](Id id) { return in_tile(id) && early(id) && waits(id); });
    const auto late = [&] {
      for (const Id id : analysis_.order[0])
        if (graph_.does(id) && in_tile(id) && !early(id) && behind(id) && !stores_.store(id)) graph_.node(id);
    };
    if (how_.multicast) {
      IfInGrid step;
      steps_.within(step.body, late);
      return push(std::move(step));
    }
    if (how_.split_k == SplitK::none) return late();
    lower_shared_tile(steps_, how_.matmuls[0].id, how_.split_k, sums_[0], share_, late);
  }

  void loop() {
    std::vector<ValueId> carried = graph_.carry(how_.loop);
    // Fenced here, not in each k-iteration: otherwise ptxas reads the initial accumulators between wgmmas, and waits
    // for each of them.
    for (const WgmmaOperands& matmul : how_.matmuls) {
      const Id sums = steps_.node(matmul.id).in[2];
      if (!how_.promotes() && !starts_from_zeros(analysis_, how_.loop, sums))
        push(RegisterFence{steps_.values.of(sums)});
    }
    fragments_.reserve(steps_);
    if (how_.promotes()) promoted_.declare();
    const Iterations range = k_iterations();
    const std::vector<Id> rows = how_.fetches_rows ? loaded_rows(analysis_, how_) : std::vector<Id>{};
    const std::vector<ValueId> held = graph_.for_next(how_.loop, rows, range, true);
    for (const ValueId row : held) steps_.plan.storage(row).changes = true;
    if (takes_turns()) push(NamedBarrier{.id = turns_, .threads = 2 * steps_.threads});
    const LoopId counter = graph_.count(how_.loop);
    graph_.iterate(how_.loop, counter, range, [&] {
      const std::vector<ValueId> next = graph_.for_next(how_.loop, rows, range, false);
      for (std::size_t i = 0; i < rows.size(); ++i) steps_.values.set(rows[i], held[i]);
      const auto is_held = [&](Id id) { return std::ranges::count(rows, id) > 0; };
      k_iteration([&](Id id) { matmul(id, counter); }, [&](Id id) { is_held(id) ? void() : graph_.node(id); });
      for (std::size_t i = 0; i < rows.size(); ++i) steps_.copy(rows[i], next[i], held[i]);
      graph_.move_on(how_.loop, carried);
      // The previous stage has been read when all but the last group of wgmmas are done.
      if (!how_.promotes()) release(counter);
      push(AdvanceStage{state(), literal(1)});
    });
    if (takes_turns()) pass_turn();
    push(WgmmaWait{0});
    release({});
    if (how_.promotes()) promoted_.finish();
    for (const ValueId sums : sums_) push(RegisterFence{sums});
    if (takes_turns()) skip_stages_of_others();
    graph_.end_loop(how_.loop, std::move(carried));
  }

  // The matmuls of a k-iteration are issued together, at the last one.
  void matmul(Id id, LoopId loop) {
    const Id carried = steps_.node(id).in[2];
    const WgmmaOperands& operands = matmul_of(id);
    PendingWgmma matmul{.wgmma = wgmma_of(operands)};
    matmul.wgmma.out = steps_.values.set(id, steps_.values.of(carried));
    if (!how_.promotes() && starts_from_zeros(analysis_, how_.loop, carried)) matmul.wgmma.overwrites_first = loop;
    if (operands.left.tile < 0) matmul.left = steps_.node(id).in[0];
    sums_.push_back(matmul.wgmma.out);
    pending_.push_back(std::move(matmul));
    if (id != how_.matmuls.back().id) return;
    push(WaitFull{state()});
    const std::vector<PendingWgmma> pending = std::exchange(pending_, {});
    if (how_.promotes()) return promoted_.multiply(pending, [&] { release(loop); });
    if (!how_.computed.empty()) return fragments_.mma(steps_, id, pending);
    push(WgmmaFence{});
    for (std::size_t i = 0; i < pending.size(); ++i) steps_.push(how_.matmuls[i].id, pending[i].wgmma);
    push(WgmmaCommit{});
    for (const ValueId sums : sums_) push(RegisterFence{sums});
    push(WgmmaWait{1});
  }
  // One thread of the group may release tiles that wgmma has read. For tiles that threads read, one thread of each warp
  // releases them after the others have read.
  void release(LoopId not_first) const {
    const bool by_threads = !how_.computed.empty();
    if (by_threads) push(WarpBarrier{});
    elected(by_threads ? 32 : 128, [&] { push(ArriveEmpty{state(), 1, not_first}); });
  }

  void pass_turn() const {
    push(NamedBarrier{.id = turns_, .threads = 2 * steps_.threads, .arrives = true, .next_consumer_group = true});
  }
  void skip_stages_of_others() const { push(AdvanceStage{state(), all_k_iterations(), true}); }

  // The producer does not wait for this: TMA boxes fill other rows. Each consumer group sees the zeros of the other by
  // the time of its turn.
  void clear_rest() const {
    // With stream-K, a CTA has k-iterations of several tiles.
    const bool by_grid = how_.split_k == SplitK::stream_k;
    push(ZeroFillRows{pipelines_.pipelines[0], by_grid ? literal(how_.pipelines[0].stages) : k_iterations().count});
    push(ProxyFence{});
    if (!takes_turns()) push(Barrier{});
  }

  int turns_ = 0;  // first of the named barriers for the turns of the consumer groups
  std::vector<ValueId> sums_;
  Fragments fragments_;
  PromotedSums promoted_;
  const TmaStores stores_;
  std::vector<PendingWgmma> pending_;  // of the loop, so far
};

}  // namespace

void lower_accumulating_consumer(const MatmulPipelines& pipelines, GraphLowering& graph) {
  AccumulatingConsumer(pipelines, graph).lower();
}

}  // namespace tessera::internal::lowering
