// Cluster split-K: when it is used, its plan, and the verifier's errors for planted faults.
#include "codegen/generate.hpp"
#include "codegen/kernel_source.hpp"
#include "codegen/passes.hpp"
#include "codegen/schedule/cost_model.hpp"
#include "codegen/schedule/split_k.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"

namespace test_clusters {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

Plan plan_of(const Graph& traced, bool clusters = true) {
  return plan_with(traced, [=](Variant& variant) { variant.split_k = clusters ? SplitK::cluster : SplitK::none; });
}
bool has_clusters(const Plan& plan) { return plan.phases[0].schedule.split_k == SplitK::cluster; }

// With [64,256], the only warp group has no registers for the partials of other CTAs, too.
constexpr MatmulTiles tiles[] = {{64, 64, 64}, {64, 128, 64}, {128, 64, 64}, {128, 128, 64}, {128, 192, 64}};

}  // namespace

TEST_CASE("the cluster size minimizes the time of a launch", "[plan]") {
  const auto blocks = [](const MmaExtents& tile, std::int64_t tiles, std::int64_t k_iterations) {
    const MatmulWork work{.tile = tile, .tiles = tiles, .k_iterations = k_iterations};
    const SplitKLaunch launch = CostModel(MachineModel::h200(), 132).split_k(work, SplitKPolicy::cluster);
    CHECK((launch.split_k == SplitK::cluster) == (launch.blocks > 1));
    return launch.blocks;
  };
  constexpr MmaExtents small{64, 64, 64}, large{128, 128, 64};
  CHECK(blocks(small, 12, 48) == 6);
  CHECK(blocks(small, 12, 200) == 8);
  CHECK(blocks(small, 36, 12) == 1);  // accumulating them takes less time than a cluster's exchange
  CHECK(blocks(small, 12, 25) == 5);
  CHECK(blocks(large, 12, 25) == 3);  // more accumulators
  CHECK(blocks(small, 36, 200) == 3);
  CHECK(blocks(small, 66, 48) == 2);
  CHECK(blocks(small, 67, 48) == 1);
  CHECK(blocks(small, 12, 0) == 1);
  CHECK(blocks(small, std::int64_t{1} << 40, 48) == 1);
  CHECK(blocks({}, 1, 0) == 1);
  CHECK(blocks({128, 192, 64}, 12, 200) == 1);
}

TEST_CASE("the k-iterations that can be split are those of the only matmul's loop", "[plan]") {
  const auto k_iterations = [](const Graph& graph, std::int64_t k) {
    Argument x{.extent = {100, k}, .stride = {k, 1}};
    return SplitKLoop(run_passes(graph)).of(std::vector<Argument>(4, x));
  };
  CHECK(k_iterations(kernels::linear<bf16, bf16>({64, 64, 64}).graph(), 641) == 11);
  CHECK(k_iterations(kernels::linear<f16, f16>({64, 64, 32}).graph(), 641) == 21);
  // wgmma reads no f32 from shared memory.
  CHECK(k_iterations(kernels::linear<f32, f32>({64, 64, 32}).graph(), 641) == 0);
  const auto of = [](auto body) { return kernel("other", body).graph(); };
  CHECK(k_iterations(of([](In<bf16, 2> x, Out<f32, 2> y) {
    Index i = blocks(1);
    Tile<bf16, 2> a = load(x, {i, i}, {64, 64});
    store(y, {i, i}, mma(a, a, zeros<f32>({64, 64})));
  }),
               64) == 0);
  CHECK(k_iterations(of([](In<bf16, 2> x, Out<f32, 2> y) {
    Index i = blocks(1);
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(i + 3)) acc = mma(load(x, {i, k}, {64, 64}), load(x, {k, i}, {64, 64}), acc);
    store(y, {i, i}, acc);
  }),
               64) == 0);
  CHECK(k_iterations(of([](In<f32, 1> x, Out<f32, 1> y) {
    Index i = blocks(1);
    store(y, {i}, load(x, {i}, {64}));
  }),
               64) == 0);
  CHECK(SplitKLoop().of({}) == 0);
  // A k-iteration of tf32 takes as long as a 16-bit one with twice the k.
  const auto deep = [](const Graph& graph) { return SplitKLoop(run_passes(graph)).extents().k; };
  CHECK(deep(kernels::linear<bf16, bf16>({64, 64, 64}).executable().graph()) == 64);
  CHECK(deep(kernels::lm_head<tf32, f32>({64, 64, 32}).executable().graph()) == 64);
  CHECK(deep(kernels::linear<f32, f32>({64, 64, 32}).executable().graph()) == 0);
}

TEST_CASE("in a cluster each CTA runs its share of k-iterations, and the first one reduces", "[plan]") {
  for (const MatmulTiles& tile : tiles) {
    const Plan plan = plan_of(kernels::linear<bf16, bf16>(tile).graph());
    INFO(tile.m << " x " << tile.n);
    REQUIRE(has_clusters(plan));
    CHECK(to_string(plan).find("the CTAs of a cluster share the k-iterations") != std::string::npos);
    CHECK(plan.phases[0].roles[1].consumer_groups == 1);
    CHECK(count<SplitKRange>(plan) == 2);
    CHECK(count<ClusterBarrier>(plan) == 4);
    CHECK(count<StorePartial>(plan) == 1);
    CHECK(count<ReducePartials>(plan) == 1);
    // With one warp group each thread has all registers that it can use.
    CHECK(count<SetMaxNReg>(plan) == (plan.phases[0].roles[1].warps == 4 ? 0 : 2));
    CHECK_FALSE(has_clusters(plan_of(kernels::linear<bf16, bf16>(tile).graph(), false)));
  }
}

TEST_CASE("a kernel whose partials do not fit beside its operands has no clusters", "[plan]") {
  const Plan large = plan_of(kernels::linear<bf16, bf16>({128, 256, 64}).graph());
  CHECK(large.phases[0].roles.size() == 2);
  CHECK_FALSE(has_clusters(large));  // 131072 bytes of accumulators, 32768 of staged output, and two stages of 49152
  CHECK(has_clusters(plan_of(kernels::linear<bf16, bf16>({128, 192, 64}).graph())));
  const Plan small = plan_of(kernels::linear<f32, f32>({16, 64, 32}).graph());
  CHECK(small.phases[0].roles.size() == 1);
  CHECK_FALSE(has_clusters(small));
  const Graph graph = run_passes(kernels::linear<bf16, bf16>({64, 64, 64}).graph());
  Variant variant = dense_variant(graph);
  variant.split_k = SplitK::cluster;
  CHECK(generate(graph, variant, Arch::sm_90a).split_k == SplitK::cluster);
  CHECK(generate(graph, variant, Arch::sm_80).split_k == SplitK::none);
  CHECK(generate(graph, variant, Arch::sm_90a, {.warp_specialize = false}).split_k == SplitK::none);
  variant.split_k = SplitK::none;
  CHECK(generate(graph, variant, Arch::sm_90a).split_k == SplitK::none);
}

TEST_CASE("kernels with clusters compile without spills", "[generate]") {
  std::vector<KernelSource> sources;
  for (const MatmulTiles& tile : tiles)
    for (const Graph& graph : {kernels::linear<f16, f16>(tile).graph(), kernels::linear<bf16, bf16>(tile).graph(),
                               kernels::linear_gelu<bf16, bf16>(tile).graph()})
      sources.push_back(kernel_source(plan_of(graph)));
  check_compiled(sources);
}

TEST_CASE("the verifier reports errors between the CTAs of a cluster", "[plan]") {
  const PlantedFault faults[] = {
      {"no barrier before the reduction", [](Plan& p) { place_of<ClusterBarrier>(p, 2).drop(); }, "barrier"},
      {"no barrier after the reduction", [](Plan& p) { place_of<ClusterBarrier>(p, 3).drop(); }, "may read"},
      {"a role reaches fewer barriers", [](Plan& p) { place_of<ClusterBarrier>(p, 0).drop(); }, "different numbers"},
      {"a single thread arrives", [](Plan& p) { place_of<ClusterBarrier>(p, 0).elect(128); }, "not all threads"},
      {"the first CTA stores partials", [](Plan& p) { split_part(p, false).first = true; }, "stores none"},
      {"the others reduce", [](Plan& p) { split_part(p, true).first = false; }, "only the first CTA reduces"},
      {"nobody stores partials", [](Plan& p) { split_part(p, false).body.clear(); }, "may not be stored yet"},
      {"nobody reduces", [](Plan& p) { split_part(p, true).body.clear(); }, "not reduced"},
      {"partials are stored beyond the scratch memory", [](Plan& p) { p.scratch[ScratchId{0}].bytes /= 2; }, "scratch"},
      {"a CTA runs all k-iterations",
       [](Plan& p) {  // in the prefetch, too
    for (const int loop : {0, 1}) the<Loop>(p, loop).count = the<SplitKRange>(p, 0).k_iterations;
  },
       "all k-iterations"},
      {"k-iterations are split without a cluster", [](Plan& p) { p.phases[0].schedule.split_k = SplitK::none; },
       "no split-K to share"},
      {"a share that is never computed", [](Plan& p) { place_of<SplitKRange>(p, 0).drop(); }, "before it is defined"},
      {"two consumer groups", [](Plan& p) { p.phases[0].roles[1].consumer_groups = 2; }, "consumer groups"},
  };
  check_reported(plan_of(kernels::linear<bf16, bf16>({64, 64, 64}).graph()), faults);
}

}  // namespace test_clusters
