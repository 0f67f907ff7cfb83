#include "codegen/lower/sm90/matmul_pipelines.hpp"

#include "codegen/analysis/budget.hpp"
#include "codegen/lower/sm90/tma_boxes.hpp"

namespace tessera::internal::lowering {
namespace {

// Registers of a producer thread. Where TMA does all loads, one thread issues them. All producer threads arrive at the
// barriers of a cluster, which takes some more. Data that they copy themselves passes through registers, as many as
// accumulators leave.
constexpr int of_tma = 24, of_clusters = 40, of_copies = 104, of_few_copies = 56;
constexpr int most_sums_beside_copies = 144;

}  // namespace

MatmulPipelines::MatmulPipelines(const GraphAnalysis& analysis, const WarpSpecialization& how,
                                 const std::map<Id, MatmulPlan>& matmuls, Plan& plan)
    : analysis(analysis), how(how), matmuls(matmuls), plan(plan), tiles(how.tiles.size()), prefetches_(may_prefetch()) {
  // Tiles that threads read are released by one thread of each warp.
  const int cluster = how.multicast ? multicast_ctas : 1,
            arrivals = cluster * how.groups * (how.computed.empty() ? 1 : 4);
  for (int number = 0; number < std::ssize(how.pipelines); ++number) {
    const TilePipeline& of = how.pipelines[static_cast<std::size_t>(number)];
    Pipeline pipeline{.label = {.stem = "pipeline"}, .buffers = {}, .stages = of.stages, .empty_arrivals = arrivals};
    pipeline.cluster = cluster;
    if (how.pipelines.size() > 1) pipeline.label.number = analysis.number[produced(of.tiles[0]).load];
    bool by_threads = false;
    for (std::size_t i = 0; i < of.tiles.size(); ++i) {
      const ProducedTile& tile = produced(of.tiles[i]);
      const auto is_like = [&](int other) {
        return produced(other).load == tile.load && produced(other).left == tile.left &&
               produced(other).type == tile.type;
      };
      const bool again = std::any_of(of.tiles.begin(), of.tiles.begin() + static_cast<std::ptrdiff_t>(i), is_like);
      const Tile made = tiles[static_cast<std::size_t>(of.tiles[i])] = make(tile, number, again);
      const GraphAccess access = analysis.access(tile.load);
      pipeline.buffers.push_back(made.buffer);
      pipeline.of_slice |= tile.slice_extent != no_id;
      by_threads |= tile.by_threads;
      if (!tile.by_threads) pipeline.bytes += plan.buffers[made.buffer].stage_bytes();
      if (tile.clipped)
        pipeline.clipped.push_back({.buffer = made.buffer,
                                    .argument = access.parameter,
                                    .axis = access.axes[static_cast<std::size_t>(tile.rows[0])].tensor_axis});
    }
    pipeline.full_arrivals = (pipeline.bytes > 0 ? 1 : 0) + (by_threads ? 128 : 0);
    pipelines.push_back(plan.pipelines.add(std::move(pipeline)));
  }
}

MatmulPipelines::Tile MatmulPipelines::make(const ProducedTile& tile, int pipeline, bool transposed) {
  const Shape& shape = analysis[tile.load].shape;
  const std::string suffix = std::string(tile.left ? "" : "_right") + (transposed ? "_transposed" : "") +
                             (tile.type == ElementType::tf32 ? "_tf32" : "");
  Buffer buffer{.label = {.stem = "tile", .number = analysis.number[tile.load], .suffix = suffix},
                .type = tile.type,
                .rows = merged_extent(shape, tile.rows),
                .columns = shape[tile.columns],
                .stages = how.pipelines[static_cast<std::size_t>(pipeline)].stages,
                .form = SharedForm::panels};
  Tile made{.buffer = {}, .map = {}, .pipeline = pipeline};
  Buffer box = buffer;
  box.rows /= parts(tile);
  if (!tile.by_threads)
    made.map = tma_tensors_of(analysis, plan, tile.load, tile.rows, box, tile.clipped ? TmaUse::clipped : TmaUse::load);
  made.buffer = plan.buffers.add(std::move(buffer));
  return made;
}

bool MatmulPipelines::is_clipped() const {
  return std::ranges::any_of(pipelines, [&](PipelineId id) { return !plan.pipelines[id].clipped.empty(); });
}

// With 64-bit offsets an address takes two registers beside each element, and for 32-bit elements ptxas keeps the
// addresses of two tiles at a time: with 16 words a tile 56 bytes spilled.
int MatmulPipelines::of_copies_under_way(int element_bytes) const {
  if (!copies_many()) return 24;
  if (!plan.variant.index64) return 64;
  return element_bytes == 4 ? 8 : 40;
}

bool MatmulPipelines::divides_registers() const { return how.groups * how.consumer_groups * how.blocks > 1; }

int MatmulPipelines::producer_registers() const {
  if (!divides_registers()) return 0;
  if (!how.copies_by_threads()) return how.split_k == SplitK::cluster || how.multicast ? of_clusters : of_tma;
  return copies_many() ? of_copies : of_few_copies;
}

int MatmulPipelines::consumer_registers() const {
  if (!divides_registers()) return 0;
  const int consumers = how.groups * how.consumer_groups;
  return Budget(plan.target, 128 * (consumers + 1), true).taken(consumers, producer_registers(), how.blocks);
}

// Other reads by threads must stay behind the PDL wait. In loops, threads have no registers for that, so that such a
// kernel begins when the previous launch has ended. Grid tiles may depend on what the producer reads.
bool MatmulPipelines::may_prefetch() const {
  if (how.is_fused_matmul() || !plan.target.programmatic_launch || how.split_k == SplitK::stream_k ||
      how.copies_by_threads())
    return false;
  for (Id id = 0; id < static_cast<Id>(analysis.graph.nodes.size()); ++id)
    if (is_read(analysis[id].op) && std::ranges::find(how.tiles, id, &ProducedTile::load) == how.tiles.end() &&
        (analysis.in_loop(id) || how.ahead[static_cast<std::size_t>(id)]))
      return false;
  return true;  // the launch writes none of its operands: a read of an InOut is no source
}

bool MatmulPipelines::copies_many() const {
  const Matmul& of = matmul(how.matmuls[0].id);
  return of.m * of.n / (128 * how.groups) * static_cast<int>(how.matmuls.size()) <= most_sums_beside_copies;
}

}  // namespace tessera::internal::lowering
