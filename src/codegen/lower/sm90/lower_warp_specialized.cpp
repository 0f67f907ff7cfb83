// The roles of a warp-specialized kernel: each lowers its part of the graph.
#include "codegen/lower/sm90/consumer.hpp"
#include "codegen/lower/sm90/producer.hpp"

namespace tessera::internal::lowering {
namespace {

// The prologue before the roles: prefetches tensor maps and initializes the pipelines. None of this depends on the
// previous launch, so it runs while that ends.
void begin_roles(Plan& plan, bool multicast) {
  ElectOne ahead{.threads = plan.threads(), .body = {}};
  for (int i = 0; i < plan.tensor_maps.size(); ++i) ahead.body.push_back({PrefetchMap{TensorMapId{i}}});
  for (int i = 0; i < plan.pipelines.size(); ++i) ahead.body.push_back({InitPipeline{PipelineId{i}}});
  ahead.body.push_back({MbarrierInitFence{}});
  // CTAs of a cluster use each other's mbarriers.
  plan.phases.back().prologue = {{std::move(ahead)}, multicast ? Step{ClusterBarrier{}} : Step{Barrier{}}};
}

}  // namespace

void WarpSpecializedSchedule::lower(const GraphAnalysis& analysis, const MatmulPlans& matmuls, const Layouts& layouts,
                                    const std::set<Id>&, Plan& plan) const {
  WarpSpecialization how = how_;
  // The buffers of stores have the layout of the accumulators.
  const Layout sums = layout_of_result(matmuls.plans.at(how.matmuls[0].id).layout, how.transposed);
  std::erase_if(how.tma_stores, [&](Id store) {
    const Id tile = analysis[store].in[0];
    return layouts.of[tile].reshaped(analysis[tile].shape, matrix_shape(analysis[tile].shape)) != sums;
  });
  plan.blocks = how.blocks;
  Phase& phase = plan.phases.back();
  phase.schedule = {.kind = Schedule::Kind::tiles,
                    .split_k = how.split_k,
                    .snake_order = how.snake_order,
                    .multicast = how.multicast ? multicast_ctas : 1,
                    .l2_group = how.l2_group,
                    .raster_group = how.raster_group};
  const MatmulPipelines pipelines(analysis, how, matmuls.plans, plan);
  constexpr int all_in_registers = 256;
  Role producer{.name = "producer", .first_warp = 0, .warps = 4, .registers = pipelines.producer_registers()};
  Role consumer{.name = "consumer",
                .first_warp = 4,
                .warps = 4 * how.groups,
                .registers = pipelines.consumer_registers(),
                .consumer_groups = how.consumer_groups,
                .barrier = plan.allocate_named_barriers(how.consumer_groups)};
  const InMemory none;
  {
    GraphLowering graph(analysis, matmuls.plans, layouts, all_in_registers, none, {.suffix = "_ahead"}, plan, producer,
                        producer_rules(how));
    lower_producer(pipelines, graph);
  }
  {
    GraphLowering graph(analysis, matmuls.plans, layouts, all_in_registers, none, {}, plan, consumer,
                        consumer_rules(analysis, how));
    how.is_fused_matmul() ? lower_fused_matmul_consumer(pipelines, graph)
                          : lower_accumulating_consumer(pipelines, graph);
  }
  phase.roles.push_back(std::move(producer));
  phase.roles.push_back(std::move(consumer));
  begin_roles(plan, how.multicast);
}

}  // namespace tessera::internal::lowering
