// Operands of warp-specialized matmuls that are not TMA-addressable: the producer's threads write them to the pipeline.
// Which operands those are, how they are read, and how the verifier reports planted faults.
#include <fmt/format.h>

#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/plan_text.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/emulating.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"

namespace test_tma_operands {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

/// A class of launches: the alignment in bytes of operands that are not aligned to 16.
struct Apart {
  int left = 16, right = 16;
  bool left_transposed = false, right_transposed = false;
  bool whole = false, clusters = false;  ///< whole: rows end at vector boundaries
};

Plan plan_of(const Graph& traced, const Apart& apart) {
  return plan_with(traced, [&](Variant& variant) {
    variant.split_k = apart.clusters ? SplitK::cluster : SplitK::none;
    const auto lies = [&](std::size_t i, int alignment, bool transposed) {
      TensorClass& tensor = variant.tensors[i];
      tensor.contiguous_axis = transposed ? 0 : 1;
      tensor.alignment = static_cast<std::int8_t>(alignment);
      tensor.tma_addressable = alignment == 16;
      tensor.row_alignment = apart.whole ? 16 : 2;
    };
    lies(0, apart.left, apart.left_transposed);
    lies(1, apart.right, apart.right_transposed);
  });
}

constexpr MatmulTiles tiles[] = {{64, 64, 64},   {64, 128, 128}, {128, 128, 64},
                                 {128, 192, 64}, {128, 256, 64}, {256, 128, 64}};

}  // namespace

TEST_CASE("the producer's threads write operands that are not TMA-addressable to the pipeline", "[plan]") {
  for (const MatmulTiles& tile : tiles)
    for (const bool left : {true, false})
      for (const bool right : {true, false})
        for (const bool clusters : {true, false}) {
          const Plan plan = plan_of(kernels::linear<bf16, bf16>(tile).graph(),
                                    {.left = left ? 2 : 16, .right = right ? 2 : 16, .clusters = clusters});
          INFO(fmt::format("[{},{}]{}{}\n", tile.m, tile.n, left ? ", left" : "", right ? ", right" : "")
               << tree_text(plan));
          REQUIRE(plan.phases[0].roles.size() == 2);
          const Pipeline& pipeline = plan.pipelines[PipelineId{0}];
          const std::int64_t of_left = left ? 0 : tile.m * tile.k * 2, of_right = right ? 0 : tile.n * tile.k * 2;
          CHECK(pipeline.bytes == of_left + of_right);
          CHECK(pipeline.full_arrivals == (pipeline.bytes > 0) + (left || right ? 128 : 0));
          CHECK(count<Arrive>(plan) == (left || right));
          const bool prefetches = !left && !right;  // the right operand, before the wait
          CHECK(count<ArriveExpectTx>(plan) == (pipeline.bytes > 0) + prefetches);
          CHECK(places_of<TmaLoad>(const_cast<Plan&>(plan)).empty() == (left && right));
          int written = 0;
          for (const StepPlace place : places_of<StoreShared>(const_cast<Plan&>(plan)))
            written += bool(place.step().action.get<StoreShared>().state);
          CHECK(written == left + right);
        }
}

TEST_CASE("the producer's threads read vectors where alignment allows, and write 32-bit words at least", "[plan]") {
  const Graph graph = kernels::linear<bf16, bf16>({64, 128, 64}).graph();
  const auto widths = [&](const Apart& apart) {
    Plan plan = plan_of(graph, apart);
    const StoreShared& stage = the<StoreShared>(plan);
    return std::pair(stage.sweep.reads.at(0).vector, stage.sweep.vector);
  };
  using Widths = std::pair<int, int>;
  CHECK(widths({.left = 2}) == Widths{1, 2});
  CHECK(widths({.left = 4, .whole = true}) == Widths{2, 2});
  CHECK(widths({.left = 8, .whole = true}) == Widths{4, 4});
  CHECK(widths({.left = 8}) == Widths{1, 2});  // rows may end within a vector
  CHECK(widths({.right = 8, .right_transposed = true, .whole = true}) == Widths{4, 4});
}

TEST_CASE("a tile that threads copy, and the same transposed, are in two buffers", "[plan]") {
  const Graph graph = kernel("both_ways", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y, Out<f32, 2> z) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var a = zeros<f32>({64, 64}), b = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64))) {
      Tile left = load(x, {m, k}, {64, 64}), right = load(w, {k, n}, {64, 64});
      a = mma(left, right, a);
      b = mma(transpose(left), right, b);
    }
    store(y, {m, n}, a);
    store(z, {m, n}, b);
  }).graph();
  const auto buffers = [&](int contiguous_axis, int alignment) {
    const Plan plan = plan_with(graph, [&](Variant& variant) {
      variant.tensors[0].contiguous_axis = static_cast<std::int8_t>(contiguous_axis);
      variant.tensors[0].alignment = static_cast<std::int8_t>(alignment);
      variant.tensors[0].tma_addressable = alignment == 16;
    });
    REQUIRE(plan.phases[0].roles.size() == 2);
    return plan.pipelines[PipelineId{0}].buffers.size();
  };
  CHECK(buffers(1, 16) == 2);  // wgmma reads one buffer either way
  CHECK(buffers(-1, 2) == 3);
}

TEST_CASE("kernels whose producer copies compile without spills", "[generate]") {
  std::vector<KernelSource> sources;
  const auto add = [&](const Graph& graph, const Apart& apart) {
    sources.push_back(kernel_source(plan_of(graph, apart)));
  };
  for (const MatmulTiles& tile : tiles) {
    add(kernels::linear<f16, f16>(tile).graph(), {.left = 2, .left_transposed = tile.n == 128});
    add(kernels::linear<bf16, bf16>(tile).graph(), {.right = 2, .right_transposed = tile.m == 128});
    add(kernels::linear<f16, f16>(tile).graph(), {.left = 2, .right = 2, .clusters = tile.n == 64});
    add(kernels::linear<bf16, bf16>(tile).graph(), {.left = 4, .right = 8, .whole = true, .clusters = tile.n == 128});
  }
  check_compiled(sources);
}

TEST_CASE("the verifier reports errors of a stage that threads write", "[plan]") {
  const auto pipeline = [](Plan& p) -> Pipeline& { return p.pipelines[PipelineId{0}]; };
  const PlantedFault faults[] = {
      {"no fence", [](Plan& p) { place_of<ProxyFence>(p).drop(); }, "a fence must precede the arrival"},
      {"a fence before the writes", [](Plan& p) { place_of<ProxyFence>(p).move(-1); }, "a fence must precede"},
      {"nobody arrives", [](Plan& p) { place_of<Arrive>(p).drop(); }, "threads arrive, but"},
      {"one thread arrives", [](Plan& p) { place_of<Arrive>(p).elect(128); }, "threads arrive, but"},
      {"one thread writes", [](Plan& p) { place_of<StoreShared>(p).elect(128); }, "1 of 128 threads write"},
      {"the operand is not written", [](Plan& p) { place_of<StoreShared>(p).drop(); }, "bytes loaded and written"},
      {"the operand is written twice",
       [](Plan& p) { place_of<StoreShared>(p).body->push_back(place_of<StoreShared>(p).step()); }, "written"},
      {"half of it is written",
       [](Plan& p) {
    Sweep& sweep = the<StoreShared>(p).sweep;
    sweep.reads[0].axes[0].extent = 32;
    sweep.shape = {32, 64};
  }, "bytes loaded and written"},
      {"a thread's rows are adjacent",
       [](Plan& p) {
    Sweep& sweep = the<StoreShared>(p).sweep;
    Layout layout(2);
    layout.add(0, {Place::warp, 4, 1});
    layout.add(0, {Place::reg, 16, 2});
    layout.add(1, {Place::lane, 32, 1});
    layout.add(1, {Place::reg, 2, 1});
    sweep.layout = layout;
  }, "the swizzle does not split"},
      {"a run of elements that the thread does not have", [](Plan& p) { the<StoreShared>(p).sweep.reads[0].run = 4; },
       "runs of 4"},
      {"a stage is written before it is released", [](Plan& p) { place_of<StoreShared>(p).move(-2); },
       "not known to be empty"},
      {"more are awaited", [&](Plan& p) { ++pipeline(p).full_arrivals; }, "threads arrive, but"},
      {"its bytes are expected, too", [&](Plan& p) { pipeline(p).bytes += 64 * 64 * 2; }, "bytes loaded"},
      {"another buffer is written", [](Plan& p) { the<StoreShared>(p).buffer = the<StoreShared>(p, 1).buffer; },
       "not a buffer of the pipeline"},
      {"all threads expect", [](Plan& p) { place_of<ElectOne>(p).replace(the<ElectOne>(p).body); },
       "128 threads expect"},
  };
  check_reported(plan_of(kernels::linear<bf16, bf16>({64, 64, 64}).graph(), {.left = 2}), faults);
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("faults in copies by the producer's threads are found without the verifier", "[emulator]") {
  const int m = 100, n = 72, k = 843;  // more k-iterations than stages
  const Graph graph = run_passes(kernels::linear<bf16, bf16>({64, 64, 64}).graph());
  std::vector<bf16> x(std::size_t{m} * k, bf16(1.0f)), w(std::size_t{k} * n, bf16(1.0f)), y(std::size_t{m} * n);
  std::vector<f32> bias(n, 1.0f);
  const std::vector<Argument> arguments = {dense_argument(x, {m, k}), dense_argument(w, {k, n}),
                                           dense_argument(bias, {n}), dense_argument(y, {m, n})};
  const Variant variant = classify(graph, arguments);
  REQUIRE(!variant.tensors[0].tma_addressable);
  REQUIRE(variant.tensors[1].tma_addressable);
  const auto report = [&](const Plant& plant) {
    Plan plan = make_plan(graph, variant, Arch::sm_90a, {});
    plant(plan);
    const KernelSource source = kernel_source(plan);
    std::ranges::fill(y, bf16(0.0f));
    return Emulator::compile(std::span(&source, 1)).run(0, graph, arguments, std::vector<std::int64_t>{2, 2}, {});
  };
  CHECK(report([](Plan&) {}).text() == "");
  CHECK(std::ranges::all_of(y, [](bf16 sum) { return float(sum) == 844.0f; }));
  const auto finds = [&](const char* name, const char* says, const Plant& plant) {
    INFO(name);
    check_found(report(plant), says, false);
  };
  finds("no fence", "with no async_proxy_fence since", [](Plan& p) { place_of<ProxyFence>(p).drop(); });
  finds("a fence ahead of what is written", "with no async_proxy_fence since",
        [](Plan& p) { place_of<ProxyFence>(p).move(-1); });
  finds("nobody arrives", "lacks 128 of 129 arrivals", [](Plan& p) { place_of<Arrive>(p).drop(); });
  finds("writers are not awaited", "once too often", [](Plan& p) { p.pipelines[PipelineId{0}].full_arrivals = 128; });
  finds("threads arrive ahead of what they write", "with no", [](Plan& p) { place_of<Arrive>(p).move(-2); });
  finds("a stage is written before it is released", "once too often", [](Plan& p) { place_of<WaitEmpty>(p).drop(); });
}
#endif

}  // namespace test_tma_operands
