#include "codegen/lower/lower_fragments.hpp"

namespace tessera::internal::lowering {

// Less of k for more rows. A k-iteration has an even number of pieces of 64 bytes, so that two sets of registers
// alternate across k-iterations, too.
int Fragments::piece_of_k(const Steps& steps, Id operand) const {
  const Node& node = steps.node(operand);
  return pieces_.bytes / info(node.type).bytes * 64 * groups_ / node.shape[0];
}

namespace {

// An operand of 8 bits goes to its registers as it is.
bool is_computed(const Node& operand) { return info(operand.type).bytes > 1; }

}  // namespace

StorageId Fragments::registers_of(const Steps& steps, Id operand, int first) const {
  return registers_.at(operand)[static_cast<std::size_t>(first / piece_of_k(steps, operand)) % pieces_.sets];
}

Sweep Fragments::piece(const Steps& steps, Id operand, int first) const {
  const Shape shape{steps.node(operand).shape[0], piece_of_k(steps, operand)};
  Sweep sweep{.shape = shape, .layout = wgmma_operand_layout(shape, groups_, steps.node(operand).type, order_)};
  sweep.part = true;
  sweep.origin[1] = first;
  return sweep;
}

// A lane has the elements of its registers of the operand, one for each pair: as if they had 32 bits.
Sweep Fragments::half_piece(const Steps& steps, Id operand, int first) const {
  const Shape shape{steps.node(operand).shape[0], piece_of_k(steps, operand) / 2};
  Sweep sweep{.shape = shape, .layout = wgmma_operand_layout(shape, groups_, ElementType::tf32, order_)};
  sweep.part = true;
  sweep.origin[1] = first / 2;
  return sweep;
}

void Fragments::reserve(Steps& steps) {
  for (const auto& [operand, computed] : operands_)
    for (std::size_t set = 0; set < pieces_.sets; ++set) {
      const ValueId value = steps.values.add_part(operand, piece(steps, operand, 0));
      const StorageId storage = registers_[operand].emplace_back(steps.plan.values[value].storage);
      steps.plan.storages[storage].changes = true;
      steps.plan.storages[storage].packed = 4 / info(steps.node(operand).type).bytes;
      steps.push(operand, DeclareAccumulator{value});
    }
}

void Fragments::mma(Steps& steps, Id id, const std::vector<PendingWgmma>& matmuls) {
  const Wgmma& any = matmuls.front().wgmma;
  const int piece = piece_of_k(steps, operands_.begin()->first);
  const auto push = [&](auto step) { steps.push(id, std::move(step)); };
  // Waits until all but the previous piece are multiplied: then the registers of the piece before that are free.
  const auto wait = [&] { push(WgmmaWait{1}); };
  for (int first = 0; first < any.k; first += piece) {
    const std::map<Id, ValueId> made = take(steps, first, any.b_state, wait);
    push(WgmmaFence{});
    for (const PendingWgmma& matmul : matmuls) {
      Wgmma wgmma = matmul.wgmma;
      wgmma.first_k = first;
      wgmma.k = piece;
      if (first > 0) wgmma.overwrites_first = {};
      if (matmul.left != no_id) wgmma.left = made.at(matmul.left);
      push(std::move(wgmma));
    }
    push(WgmmaCommit{});
    for (const PendingWgmma& matmul : matmuls) push(RegisterFence{matmul.wgmma.out});
  }
}

std::map<Id, ValueId> Fragments::take(Steps& steps, int first, PipelineStateId state,
                                      const std::function<void()>& wait) {
  // ptxas keeps an element that is read and only rounded to tf32 in one register, that of the operand. It must be free
  // before the read; otherwise ptxas makes each wgmma wait for the one before (C7513). 8-bit operands are read there.
  const ElementType type = steps.node(operands_.begin()->first).type;
  const bool in_place = type == ElementType::tf32 || info(type).bytes == 1;
  if (in_place) wait();
  std::map<Id, std::vector<ValueId>> tiles;
  for (const auto& [operand, computed] : operands_) tiles[operand] = read(steps, operand, first, state);
  if (!in_place) wait();
  std::map<Id, ValueId> made;
  for (const auto& [operand, computed] : operands_) {
    made[operand] =
        is_computed(steps.node(operand)) ? compute(steps, operand, first, tiles[operand]) : tiles[operand][0];
    steps.push(operand, RegisterFence{made[operand]});
  }
  return made;
}

std::vector<ValueId> Fragments::read(Steps& steps, Id operand, int first, PipelineStateId state) const {
  std::vector<ValueId> values;
  for (const ReadTile& read : operands_.at(operand).tiles) {
    const Id tile = read.tile;
    const StagedTile& staged = tiles_.at(tile);
    Sweep sweep = read.repeated ? half_piece(steps, operand, first) : piece(steps, operand, first);
    const ElementType type = steps.plan.buffers[staged.buffer].type;
    const bool computed = is_computed(steps.node(operand)), to_reals = !read.repeated && read.read_as != tile;
    const ValueId out = values.emplace_back(
        computed
            ? steps.values.add_part(tile, sweep)
            : steps.plan.values.add({registers_of(steps, operand, first), sweep.shape, sweep.layout, sweep.origin}));
    steps.plan.storage(out).type = to_reals ? steps.node(read.read_as).type : type;
    steps.push(tile, LoadFragment{.buffer = staged.buffer,
                                  .state = state,
                                  .transposed = staged.transposed,
                                  .by_matrix = info(type).bytes == 1 && (staged.transposed || !computed),
                                  .to_reals = to_reals,
                                  .out = out,
                                  .sweep = std::move(sweep)});
  }
  return values;
}

ValueId Fragments::compute(Steps& steps, Id operand, int first, const std::vector<ValueId>& tiles) const {
  const ComputedOperand& computed = operands_.at(operand);
  const Node& node = steps.node(operand);
  SweepBuilder builder(steps, node.shape, wgmma_operand_layout(node.shape, groups_, node.type, order_));
  const int extent = piece_of_k(steps, operand);
  builder.part(1, first, extent).inlining(computed.nodes);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const ReadTile& read = computed.tiles[i];
    read.repeated ? builder.give_twice(read.read_as, tiles[i]) : builder.give(read.read_as, tiles[i]);
  }
  Sweep sweep = builder.express(operand).take();
  leave_rounding_to_memory(sweep.expression);
  const ValueId out =
      steps.plan.values.add({registers_of(steps, operand, first), sweep.shape, sweep.layout, sweep.origin});
  steps.push(operand, Compute{.out = out, .sweep = std::move(sweep)});
  return out;
}

}  // namespace tessera::internal::lowering
