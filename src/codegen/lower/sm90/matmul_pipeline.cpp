#include "codegen/lower/sm90/matmul_pipeline.hpp"

#include "codegen/analysis/budget.hpp"
#include "codegen/lower/sm90/tma_boxes.hpp"
#include "codegen/lower/sm90/warp_role.hpp"
#include "codegen/schedule/wgmma_tiles.hpp"

namespace tessera::internal::lowering {
namespace {

// Registers of a producer thread. All producer threads arrive at the barriers of a cluster, which takes some more. Data
// that they copy themselves passes through registers, as many as accumulators leave.
constexpr int of_clusters = 40, of_copies = 104, of_few_copies = 56;
constexpr int most_sums_beside_copies = 144;

}  // namespace

MatmulPipeline::MatmulPipeline(const GraphAnalysis& analysis, const WarpSpecializedGemm& how,
                               const std::map<Id, MatmulPlan>& matmuls, Plan& plan)
    : MatmulPipeline(analysis, how, matmuls.at(how.matmuls[0]).matmul, plan) {
  // Tiles that threads read are released by one thread of each warp.
  const int arrivals = how.groups * (how.computed.empty() ? 1 : 4);
  Pipeline pipeline{.label = {.stem = "pipeline"}, .buffers = {}, .stages = how.stages, .empty_arrivals = arrivals};
  for (const Id id : how.matmuls) {
    const MatmulPlan& of = matmuls.at(id);
    if (of.a.load != no_id) left[id] = operand(of.a, true, of.matmul.type);
    right[id] = operand(of.b, false, of.matmul.type);
  }
  for (const auto& [id, computed] : how.computed)
    for (const Id tile : computed.tiles) {
      const Source source = find_source(analysis.graph, tile);
      tiles[tile] = {.buffer = operands[operand(source, true, analysis[source.load].type)].buffer,
                     .transposed = !is_k_major(analysis.access(source.load), source.axis[0])};
    }
  prefetches = may_prefetch();
  for (const Operand& one : operands) {
    pipeline.buffers.push_back(one.buffer);
    if (one.by_threads) continue;
    pipeline.bytes += plan.buffers[one.buffer].stage_bytes();
    const GraphAccess access = analysis.access(one.load);
    pipeline.clipped.push_back({.buffer = one.buffer,
                                .argument = access.parameter,
                                .axis = access.axes[static_cast<std::size_t>(one.rows)].tensor_axis});
  }
  pipeline.full_arrivals = (pipeline.bytes > 0 ? 1 : 0) + (how.by_threads.empty() ? 0 : 128);
  this->pipeline = plan.pipelines.add(std::move(pipeline));
}

// With 64-bit offsets an address takes two registers beside each element, and for 32-bit elements ptxas keeps the
// addresses of two tiles at a time: with 16 words a tile 56 bytes spilled.
int MatmulPipeline::of_copies_under_way(int element_bytes) const {
  if (!copies_many()) return 24;
  if (!plan.variant.index64) return 64;
  return element_bytes == 4 ? 8 : 40;
}

int MatmulPipeline::producer_registers() const {
  if (how.groups * how.consumer_groups == 1) return 0;
  if (how.by_threads.empty()) return how.split_k == SplitK::cluster ? of_clusters : of_producer;
  return copies_many() ? of_copies : of_few_copies;
}

int MatmulPipeline::consumer_registers() const {
  const int consumers = how.groups * how.consumer_groups;
  if (consumers == 1) return 0;
  return Budget(plan.target, 128 * (consumers + 1), true).taken(consumers, producer_registers());
}

// Other reads by threads must stay behind the PDL wait, for which threads have no registers: such a kernel begins when
// the previous launch has ended.
bool MatmulPipeline::may_prefetch() const {
  if (!plan.target.programmatic_launch || how.split_k == SplitK::stream_k || !how.by_threads.empty()) return false;
  for (Id id = 0; id < static_cast<Id>(analysis.graph.nodes.size()); ++id)
    if (is_read(analysis[id].op) && std::ranges::find(operands, id, &Operand::load) == operands.end()) return false;
  return true;  // the launch writes none of its operands: a read of an InOut is no source
}

bool MatmulPipeline::copies_many() const {
  return m * n / (128 * how.groups) * static_cast<int>(how.matmuls.size()) <= most_sums_beside_copies;
}

// Matmuls that share an operand, transposed alike and of the same type, read one buffer.
std::size_t MatmulPipeline::operand(const Source& source, bool is_left, ElementType type) {
  const int k_axis = source.axis[is_left ? 1 : 0];
  const auto of_load = [&](const Operand& one) {
    return one.load == source.load && one.left == is_left && plan.buffers[one.buffer].type == type;
  };
  const auto found = std::ranges::find_if(
      operands, [&](const Operand& one) { return of_load(one) && (one.k_major ? one.columns : one.rows) == k_axis; });
  if (found != operands.end()) return static_cast<std::size_t>(found - operands.begin());
  operands.push_back(new_operand(source, is_left, std::ranges::any_of(operands, of_load), type));
  return operands.size() - 1;
}

MatmulPipeline::Operand MatmulPipeline::new_operand(const Source& source, bool is_left, bool transposed,
                                                    ElementType type) {
  const int k_axis = source.axis[is_left ? 1 : 0], other_axis = source.axis[is_left ? 0 : 1];
  const bool k_major = is_k_major(analysis.access(source.load), other_axis);
  const int other = is_left ? m : n;
  const std::string suffix = std::string(is_left ? "" : "_right") + (transposed ? "_transposed" : "") +
                             (type == ElementType::tf32 ? "_tf32" : "");
  Buffer buffer{.label = {.stem = "tile", .number = analysis.number[source.load], .suffix = suffix},
                .type = type,
                .rows = k_major ? other : k,
                .columns = k_major ? k : other,
                .stages = how.stages,
                .form = SharedForm::panels};
  Operand operand{.load = source.load,
                  .left = is_left,
                  .buffer = {},
                  .k_major = k_major,
                  .rows = k_major ? other_axis : k_axis,
                  .columns = k_major ? k_axis : other_axis,
                  .by_threads = how.by_threads.contains(source.load),
                  .map = {}};
  if (!operand.by_threads)
    operand.map = tma_tensors_of(analysis, plan, source.load, operand.rows, buffer, TmaUse::clipped);
  operand.buffer = plan.buffers.add(std::move(buffer));
  return operand;
}

}  // namespace tessera::internal::lowering
