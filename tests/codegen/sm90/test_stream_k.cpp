// Stream-K: when it is used, its plan, and the verifier's errors for planted faults.
#include "codegen/generate.hpp"
#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/schedule/cost_model.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"
#include "tessera/jit/choose.hpp"

namespace test_stream_k {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

Graph with_residual(const MatmulTiles& tiles) {
  return kernel("residual", [=](In<bf16, 2> x, In<bf16, 2> w, InOut<f32, 2> z, tessera::internal::Out<bf16, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Tile sums = kernels::matmul<bf16>(x, w, m, n, tiles);
    Tile before = load(z, {m, n}, {tiles.m, tiles.n});
    store(z, {m, n}, before + sums);
    store(y, {m, n}, cast<bf16>(sums));
  }).graph();
}

Plan plan_of(const Graph& traced) {
  return plan_with(traced, [](Variant& variant) { variant.split_k = SplitK::stream_k; });
}

constexpr int multiprocessors = 132;
SplitKLaunch launch_of(const MatmulTiles& tiles, std::int64_t m, std::int64_t n, std::int64_t k,
                       SplitKPolicy policy = SplitKPolicy::automatic) {
  const std::int64_t rows = (m + tiles.m - 1) / tiles.m;
  const MatmulWork work{.tile = {tiles.m, tiles.n, tiles.k},
                        .rows = rows,
                        .tiles = rows * ((n + tiles.n - 1) / tiles.n),
                        .k_iterations = (k + tiles.k - 1) / tiles.k};
  return CostModel(MachineModel::h200(), multiprocessors).split_k(work, policy);
}

}  // namespace

TEST_CASE("stream-K is used where multiprocessors would be idle", "[plan]") {
  // 204 tiles, and operands that do not fit into the L2 cache: the four tiles of a column run in lockstep.
  const SplitKLaunch wide = launch_of({128, 256, 64}, 424, 13008, 7760);
  CHECK(wide.split_k == SplitK::stream_k);
  CHECK(wide.blocks == 132);
  CHECK(wide.lockstep_rows == 4);
  const SplitKLaunch part = launch_of({128, 128, 64}, 496, 2176, 4400);  // 68 tiles, with operands that fit
  CHECK(part.split_k == SplitK::stream_k);
  CHECK(part.blocks == 132);
  CHECK(part.lockstep_rows == 1);
  // Known to be wrong: 20.4 us without stream-K on an H200, 24.6 with it. choose() takes other tiles there.
  CHECK(launch_of({128, 128, 64}, 496, 2496, 3584).split_k == SplitK::stream_k);
  // Measured on an H200: stream-K is slower for these.
  CHECK(launch_of({128, 192, 64}, 7272, 1536, 2400).split_k == SplitK::none);
  CHECK(launch_of({128, 256, 64}, 8192, 8192, 8192).split_k == SplitK::none);  // 15.5 waves
  CHECK(launch_of({128, 128, 64}, 1408, 1536, 4096).split_k == SplitK::none);  // one wave
  CHECK(launch_of({128, 128, 64}, 1408, 1664, 192).split_k == SplitK::none);   // three k-iterations
  CHECK(launch_of({64, 64, 64}, 16, 768, 3072).split_k == SplitK::cluster);
  // As requested by the policy.
  CHECK(launch_of({128, 256, 64}, 424, 13008, 7760, SplitKPolicy::none).split_k == SplitK::none);
  CHECK(launch_of({128, 256, 64}, 424, 13008, 7760, SplitKPolicy::cluster).split_k == SplitK::none);
  CHECK(launch_of({64, 64, 64}, 16, 768, 3072, SplitKPolicy::stream_k).split_k == SplitK::stream_k);
  CHECK(launch_of({64, 64, 64}, 16, 768, 3072, SplitKPolicy::cluster).split_k == SplitK::cluster);
  CHECK(launch_of({128, 256, 64}, 8192, 8192, 8192, SplitKPolicy::stream_k).split_k == SplitK::stream_k);
  CHECK(launch_of({64, 64, 64}, 64, 64, 128, SplitKPolicy::stream_k).split_k == SplitK::none);
  // Numbers of k-iterations are counted in 32 bits; without any nothing is split.
  CHECK(launch_of({64, 64, 64}, 1 << 20, 1 << 20, 4096, SplitKPolicy::stream_k).split_k == SplitK::none);
  CHECK(launch_of({64, 64, 64}, 64, 64, 0, SplitKPolicy::stream_k).split_k == SplitK::none);
  CHECK(launch_of({64, 64, 64}, 0, 64, 640, SplitKPolicy::stream_k).split_k == SplitK::none);
}

TEST_CASE("the time model knows stream-K", "[plan]") {
  const MatmulTarget on{Target::of(Arch::sm_90a), multiprocessors};
  MatmulTarget alone = on;
  alone.split_k = SplitKPolicy::none;
  const auto chosen = [](const MatmulTarget& target, std::int64_t m, std::int64_t n, std::int64_t k) {
    return choose(MatmulFamily::plain, {m, n, k}, ElementType::bf16, target);
  };
  CHECK(chosen(on, 424, 13008, 7760) == MatmulTiles{128, 256, 64});
  // 1.05 waves of small tiles are no longer needed.
  CHECK(launch_of(chosen(on, 1200, 3584, 4096), 1200, 3584, 4096).split_k == SplitK::stream_k);
  CHECK(chosen(on, 8192, 8192, 8192) == chosen(alone, 8192, 8192, 8192));
}

TEST_CASE("with stream-K each CTA runs its share of all k-iterations", "[plan]") {
  for (const MatmulTiles& tile : wgmma_tiles()) {
    const Plan plan = plan_of(kernels::linear<bf16, bf16>(tile).graph());
    INFO(tile.m << " x " << tile.n);
    REQUIRE(plan.shared_by_grid());
    CHECK(to_string(plan).find("stream-K: all CTAs share the k-iterations of all grid tiles") !=
          std::string::npos);
    CHECK(plan.phases[0].roles[1].consumer_groups == 1);
    CHECK(plan.phases[0].roles[1].warps == (tile.m % 128 ? 4 : 8));
    CHECK(plan.workspace_bytes == 4 * tile.m * tile.n);
    CHECK(count<SplitKRange>(plan) == 2);
    CHECK(count<ClusterBarrier>(plan) == 0);
    for (const int of_each : {count<StorePartial>(plan), count<SignalPartial>(plan), count<ForEachPeer>(plan),
                              count<WaitPartial>(plan), count<ReducePartials>(plan)})
      CHECK(of_each == 1);
    // The pipeline keeps all its stages.
    const Graph graph = run_passes(kernels::linear<bf16, bf16>(tile).graph());
    CHECK(plan.pipelines[PipelineId{0}].stages >=
          make_plan(graph, dense_variant(graph), Arch::sm_90a, {}).pipelines[PipelineId{0}].stages);
  }
  CHECK_FALSE(plan_of(kernels::linear<f32, f32>({16, 64, 32}).graph()).shared_by_grid());
  const Graph graph = run_passes(kernels::linear<bf16, bf16>({128, 128, 64}).graph());
  Variant variant = dense_variant(graph);
  variant.split_k = SplitK::stream_k;
  CHECK(generate(graph, variant, Arch::sm_90a).split_k == SplitK::stream_k);
  CHECK(generate(graph, variant, Arch::sm_80).split_k == SplitK::none);
  variant.index64 = true;
  CHECK(generate(graph, variant, Arch::sm_90a).split_k == SplitK::none);
}

TEST_CASE("stream-K kernels compile without spills", "[generate]") {
  std::vector<KernelSource> sources;
  bool f16_turn = false;
  for (const MatmulTiles& tile : wgmma_tiles()) {
    f16_turn = !f16_turn;  // f16 and bf16 in turn: one word of an instruction distinguishes them
    for (const Graph& graph :
         {f16_turn ? kernels::linear<f16, f16>(tile).graph() : kernels::linear<bf16, bf16>(tile).graph(),
          with_residual(tile), kernels::linear_gelu<bf16, bf16>(tile).graph()})
      sources.push_back(kernel_source(plan_of(graph)));
  }
  check_compiled(sources);
}

TEST_CASE("the verifier reports errors between the CTAs of stream-K", "[plan]") {
  const PlantedFault faults[] = {
      {"the signal comes before all partials are stored",
       [](Plan& p) { split_part(p, false).body.erase(split_part(p, false).body.begin() + 1); },
       "the partial may be incomplete"},
      {"nobody signals", [](Plan& p) { split_part(p, false).body.pop_back(); }, "role consumer"},
      {"all threads signal",
       [&](Plan& p) {
    Body& body = split_part(p, false).body;
    body.back() = {SignalPartial{}};
  }, "256 threads signal"},
      {"nobody stores partials", [](Plan& p) { split_part(p, false).body.clear(); }, "does not store partials"},
      {"the first CTA stores partials", [](Plan& p) { split_part(p, false).first = true; }, "stores none"},
      {"the others reduce", [](Plan& p) { split_part(p, true).first = false; }, "no peer CTAs"},
      {"nobody waits", [](Plan& p) { the<ForEachPeer>(p, 0).body.erase(the<ForEachPeer>(p, 0).body.begin()); },
       "may not be stored yet"},
      {"one thread has waited, and the others go on",
       [](Plan& p) { the<ForEachPeer>(p, 0).body.erase(the<ForEachPeer>(p, 0).body.begin() + 1); },
       "may not be stored yet"},
      {"all wait", [](Plan& p) { the<ForEachPeer>(p, 0).body[0] = {WaitPartial{}}; }, "256 threads wait"},
      {"nobody reduces", [](Plan& p) { the<ForEachPeer>(p, 0).body.pop_back(); }, "is not reduced"},
      {"the result is stored without the partials of others", [](Plan& p) { place_of<ForEachPeer>(p, 0).drop(); },
       "before partials of other CTAs are reduced"},
      {"partials of other k-iterations",
       [](Plan& p) { the<ForEachPeer>(p, 0).k_iterations = {.kind = codegen::Operand::Kind::literal, .literal = 7}; },
       "for other k-iterations"},
      {"a share of other k-iterations",
       [](Plan& p) { the<SplitKRange>(p, 0).k_iterations = {.kind = codegen::Operand::Kind::literal, .literal = 7}; },
       "range of other k-iterations"},
      {"a CTA runs all k-iterations", [](Plan& p) { the<Loop>(p, 0).count = the<SplitKRange>(p, 0).k_iterations; },
       "all k-iterations"},
      {"a share that is never computed", [](Plan& p) { place_of<SplitKRange>(p, 1).drop(); }, "before it is defined"},
      {"another value determines the first CTA",
       [](Plan& p) { split_part(p, true).share = the<SplitKRange>(p, 1).count; }, "another number"},
      {"k-iterations are split without stream-K", [](Plan& p) { p.phases[0].schedule.split_k = SplitK::none; },
       "the kernel has"},
      {"k-iterations without a count", [](Plan& p) { the<TileLoop>(p, 0).k_iterations = {}; },
       "a tile loop has k-iterations without stream-K"},
      {"partials are stored where others do not read", [](Plan& p) { p.scratch[ScratchId{0}].in_workspace = false; },
       "do not read"},
      {"partials are stored beyond the scratch memory", [](Plan& p) { p.scratch[ScratchId{0}].bytes /= 2; }, "scratch"},
      {"no flags",
       [](Plan& p) {
    std::erase_if(p.parameters, [](const KernelParameter& one) { return one.kind == KernelParameter::Kind::flags; });
  }, "parameters"},
      {"two consumer groups", [](Plan& p) { p.phases[0].roles[1].consumer_groups = 2; }, "consumer groups"},
  };
  check_reported(plan_of(kernels::linear<bf16, bf16>({128, 128, 64}).graph()), faults);
}

}  // namespace test_stream_k
