// Clusters whose CTAs load right operands for each other: which kernels can, their plans, and the verifier's errors for
// planted faults.
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

namespace test_multicast {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

Plan plan_of(const Graph& traced, bool multicast = true) {
  return plan_with(traced, [=](Variant& variant) { variant.multicast = multicast; });
}
int multicast_of(const Plan& plan) { return plan.phases[0].schedule.multicast; }

constexpr MatmulTiles tiles[] = {{64, 64, 64},   {64, 256, 64},  {128, 64, 64}, {128, 128, 64},
                                 {128, 192, 64}, {128, 256, 64}, {256, 128, 64}};

/// The consumers' steps do not name the place along the first axis.
Graph sums_of_columns() {
  return kernel("columns", [](In<bf16, 2> x, In<bf16, 2> w, InOut<f32, 2> y) {
    auto [m, n] = blocks(cdiv(x.extent(0), 64), cdiv(y.extent(1), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {m, k}, {64, 64}), load(w, {k, n}, {64, 64}), acc);
    atomic_add(y, {0, n}, acc);
  }).graph();
}

}  // namespace

TEST_CASE("with multicast each CTA loads its part of right operands, for both", "[plan]") {
  for (const MatmulTiles& tile : tiles) {
    INFO(tile.m << " x " << tile.n);
    Plan plan = plan_of(kernels::linear<bf16, bf16>(tile).graph());
    REQUIRE(multicast_of(plan) == 2);
    CHECK(to_string(plan).find("clusters of 2 CTAs") != std::string::npos);
    const Pipeline& pipeline = plan.pipelines[PipelineId{0}];
    CHECK(pipeline.cluster == 2);
    CHECK(pipeline.bytes == (tile.m + tile.n) * tile.k * 2);  // of both parts
    CHECK(pipeline.empty_arrivals == 2 * plan.phases[0].roles[1].warps / 4);
    CHECK(count<IfInGrid>(plan) == 1);
    CHECK(count<ClusterBarrier>(plan) == 2);
    CHECK(plan.phases[0].prologue.back().action.is<ClusterBarrier>());
    int parts = 0, whole = 0;
    for (int i = 0; i < count<TmaLoad>(plan); ++i) {
      const TmaLoad& load = the<TmaLoad>(plan, i);
      (load.multicast_axis < 0 ? whole : parts) += 1;
      if (load.multicast_axis < 0) continue;
      CHECK(load.multicast_axis == 1);
      CHECK(plan.tensor_maps[load.map].tensor.box[1] == tile.k / 2);
    }
    CHECK(parts % (tile.n / 64) == 0);
    CHECK(whole > 0);
    CHECK(multicast_of(plan_of(kernels::linear<bf16, bf16>(tile).graph(), false)) == 1);
  }
  // Rows of the right operand that run along k are divided along n.
  Plan along_k = plan_of(kernels::lm_head<bf16, bf16>({128, 128, 64}).graph());
  REQUIRE(multicast_of(along_k) == 2);
  const PipelineId pipeline{0};
  CHECK(along_k.pipelines[pipeline].cluster == 2);
  int boxes = 0;
  for (const TensorMap& map : along_k.tensor_maps) boxes += !map.store && map.tensor.box[1] == 64;
  CHECK(boxes == 1);
}

TEST_CASE("multicast needs right operands that do not depend on the first axis, and no earlier effects", "[plan]") {
  const auto of = [](auto body) { return multicast_of(plan_of(kernel("other", body).graph())); };
  const auto matmul = [](auto&& x, auto&& w, Index m, Index n, Index w_row) {
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64)))
      acc = mma(load(x, {m, k}, {64, 64}), load(w, {k + w_row, n}, {64, 64}), acc);
    return acc;
  };
  CHECK(of([&](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    store(y, {m, n}, matmul(x, w, m, n, n));
  }) == 2);
  CHECK(of([&](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {  // experts: each row of tiles has a matrix of its own
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    store(y, {m, n}, matmul(x, w, m, n, m));
  }) == 1);
  CHECK(of([&](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {  // the first axis is that of the columns
    auto [n, m] = blocks(cdiv(y.extent(1), 64), cdiv(y.extent(0), 64));
    store(y, {m, n}, matmul(x, w, m, n, m));
  }) == 1);
  CHECK(of([&](In<bf16, 2> x, In<bf16, 2> w, InOut<i32, 1> count, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    atomic_add(count, {0}, full<i32>({1}, 1));
    store(y, {m, n}, matmul(x, w, m, n, n));
  }) == 1);
  // The epilogue's effects are ordered as elsewhere.
  CHECK(of([&](In<bf16, 2> x, In<bf16, 2> w, InOut<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Tile beside = load(y, {m, n + 1}, {64, 64});
    store(y, {m, n}, matmul(x, w, m, n, n) + beside);
    store(y, {m, n + 2}, beside);
  }) == 2);
  // No step of the consumers names the place along the first axis, except that the tile has one.
  const Plan plan = plan_of(sums_of_columns());
  REQUIRE(multicast_of(plan) == 2);
  const std::string text = kernel_source(plan).text;
  const std::size_t declared = text.rfind("const int block0 = "), used = text.find("if (block0 < grid0)");
  CHECK(declared < used);
  CHECK(used != text.npos);
  CHECK(text.find("role consumer:", text.find("role producer:")) < declared);
  // Threads copy what TMA cannot address.
  CHECK(multicast_of(plan_with(kernels::linear<bf16, bf16>({64, 64, 64}).graph(), [](Variant& variant) {
    variant.multicast = true;
    variant.tensors[1].tma_addressable = false;
  })) == 1);
  const Graph graph = run_passes(kernels::linear<bf16, bf16>({64, 64, 64}).graph());
  Variant variant = dense_variant(graph);
  variant.multicast = true;
  CHECK(generate(graph, variant, Arch::sm_90a).multicast == 2);
  CHECK(generate(graph, variant, Arch::sm_80).multicast == 1);
  CHECK(generate(graph, variant, Arch::sm_90a, {.warp_specialize = false}).multicast == 1);
}

TEST_CASE("rows of a right operand are aligned as the worst of them, by up to a line", "[plan]") {
  const auto alignment = [](const Graph& graph, std::array<std::int64_t, 2> stride, std::uintptr_t address = 4096) {
    std::vector<Argument> arguments(4);
    arguments[1] = {.data = reinterpret_cast<void*>(address), .extent = {64, 64}, .stride = {stride[0], stride[1]}};
    return SplitKLoop(run_passes(graph)).right_alignment(arguments);
  };
  const Graph bf16_rows = kernels::linear<bf16, bf16>({64, 64, 64}).graph();
  CHECK(alignment(bf16_rows, {64, 1}) == 128);
  CHECK(alignment(bf16_rows, {256, 1}) == 128);
  CHECK(alignment(bf16_rows, {96, 1}) == 64);
  CHECK(alignment(bf16_rows, {80, 1}) == 32);
  CHECK(alignment(bf16_rows, {72, 1}) == 16);
  CHECK(alignment(bf16_rows, {64, 1}, 4096 + 16) == 16);
  CHECK(alignment(bf16_rows, {1, 64}) == 128);
  CHECK(alignment(bf16_rows, {1, 72}) == 16);
  CHECK(SplitKLoop().right_alignment({}) == 128);
  CHECK_FALSE(SplitKLoop().may_multicast());
  CHECK(SplitKLoop(run_passes(bf16_rows)).may_multicast());
  const Graph turned = kernel("turned", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [n, m] = blocks(cdiv(y.extent(1), 64), cdiv(y.extent(0), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {m, k}, {64, 64}), load(w, {k, n}, {64, 64}), acc);
    store(y, {m, n}, acc);
  }).graph();
  CHECK_FALSE(SplitKLoop(run_passes(turned)).may_multicast());
}

TEST_CASE("kernels with multicast compile without spills", "[generate]") {
  std::vector<KernelSource> sources{kernel_source(plan_of(sums_of_columns()))};
  for (const MatmulTiles& tile : tiles)
    for (const Graph& graph : {kernels::linear<f16, f16>(tile).graph(), kernels::linear_gelu<bf16, bf16>(tile).graph(),
                               kernels::linear_residual<bf16, bf16>(tile).graph()})
      sources.push_back(kernel_source(plan_of(graph)));
  check_compiled(sources);
}

TEST_CASE("the verifier reports errors between CTAs that multicast", "[plan]") {
  // Those before the wait and those of the loop.
  const auto parts = [](Plan& plan, const auto& change) {
    for (const StepPlace& place : places_of<TmaLoad>(plan))
      if (TmaLoad& load = place.step().action.get<TmaLoad>(); load.multicast_axis >= 0) change(load);
  };
  const auto along = [&](int axis) {
    return [&parts, axis](Plan& p) { parts(p, [axis](TmaLoad& load) { load.multicast_axis = axis; }); };
  };
  const auto tensor_of_parts = [&](Plan& p) -> TmaTensor& {
    TensorMapId map;
    parts(p, [&](const TmaLoad& load) { map = load.map; });
    return p.tensor_maps[map].tensor;
  };
  const PlantedFault faults[] =
      {
          {"CTAs do not wait for each other's mbarriers", [](Plan& p) { p.phases[0].prologue.back() = {Barrier{}}; },
           "each other's mbarriers"},
          {"a role ends early", [](Plan& p) { place_of<ClusterBarrier>(p, 1).drop(); }, "may load for it"},
          {"a single thread arrives at the end", [](Plan& p) { place_of<ClusterBarrier>(p, 0).elect(128); },
           "not all threads"},
          {"stages are released to the own CTA alone", [](Plan& p) { p.pipelines[PipelineId{0}].empty_arrivals /= 2; },
           "arrive for each stage"},
          {"a pipeline of one CTA", [](Plan& p) { p.pipelines[PipelineId{0}].cluster = 1; }, "release the stage"},
          {"a part is loaded by one CTA for itself", along(-1), "bytes loaded"},
          {"a part is prefetched by one CTA for itself",
           [](Plan& p) {
    for (int i = 0;; ++i)
      if (TmaLoad& load = the<TmaLoad>(p, i); load.multicast_axis >= 0) return void(load.multicast_axis = -1);
           },
           "prefetches other boxes than it skips"},
          {"parts along the contiguous axis", along(0), "equal parts"},
          {"parts beyond the coordinates", along(2), "equal parts"},
          {"each CTA loads all rows", [&](Plan& p) { tensor_of_parts(p).box[1] *= 2; }, "equal parts"},
          {"parts that are clipped", [&](Plan& p) { tensor_of_parts(p).clipped = true; }, "equal parts"},
          {"a CTA without a tile stores",
           [](Plan& p) {
    IfInGrid& guard = the<IfInGrid>(p, 0);
    Body inside = std::move(guard.body);
    guard.body = {};
    Body& tile = the<TileLoop>(p, 1).body;
    tile.insert(tile.end(), inside.begin(), inside.end());
           },
           "without a tile"},
                     {"clusters of three", [](Plan& p) { p.phases[0].schedule.multicast = 3; }, "a cluster of 3"},
                     {"no clusters", [](Plan& p) { p.phases[0].schedule.multicast = 1; }, "multicast to 1 CTAs"},
                     {"CTAs share k-iterations, too", [](Plan& p) { p.phases[0].schedule.split_k = SplitK::cluster; },
                      "neighboring tiles"},
                     };
  check_reported(plan_of(kernels::linear<bf16, bf16>({128, 128, 64}).graph()), faults);
}

}  // namespace test_multicast
