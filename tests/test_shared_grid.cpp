// Rounds of products that all blocks of a launch share: when they do, the plan for it, and what its verifier says of
// faults.
#include <fmt/format.h>

#include <functional>

#include "catch.hpp"
#include "codegen/generate.hpp"
#include "codegen/lower/make_plan.hpp"
#include "codegen/passes/passes.hpp"
#include "codegen/plan/verify_plan.hpp"
#include "codegen/sharing.hpp"
#include "compiled_device.hpp"
#include "compiling.hpp"
#include "jit/product_tiles.hpp"
#include "model/kernels.hpp"
#include "plan_steps.hpp"
#include "support.hpp"
#include "tessera/jit/choose.hpp"
#include "variants.hpp"

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

template <class T>
Graph product(const ProductTiles& tiles) {
  return kernel("product", [=](In<T, 2> x, In<T, 2> w, In<f32, 1> bias, tessera::internal::Out<T, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    store(y, {m, n}, cast<T>(kernels::product<T>(x, w, m, n, tiles) + load(bias, {n}, {tiles.n})));
  }).graph();
}

Graph with_residual(const ProductTiles& tiles) {
  return kernel("residual", [=](In<bf16, 2> x, In<bf16, 2> w, InOut<f32, 2> z, tessera::internal::Out<bf16, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Tile sums = kernels::product<bf16>(x, w, m, n, tiles);
    Tile before = load(z, {m, n}, {tiles.m, tiles.n});
    store(z, {m, n}, before + sums);
    store(y, {m, n}, cast<bf16>(sums));
  }).graph();
}

Variant shared_variant(const Graph& graph) {
  Variant variant = dense_variant(graph);
  variant.sharing = Sharing::grid;
  return variant;
}
Plan plan_of(const Graph& traced) {
  const Graph graph = run_passes(traced);
  return make_plan(graph, shared_variant(graph), Arch::sm_90a, {.verify = true});
}

constexpr int multiprocessors = 132;
SharedLaunch launch_of(const ProductTiles& tiles, std::int64_t m, std::int64_t n, std::int64_t k,
                       SharingPolicy policy = SharingPolicy::automatic) {
  const std::int64_t grid[] = {(m + tiles.m - 1) / tiles.m, (n + tiles.n - 1) / tiles.n};
  return share_launch({tiles.m, tiles.n, tiles.k}, grid, (k + tiles.k - 1) / tiles.k, multiprocessors, policy);
}

}  // namespace

TEST_CASE("a grid shares rounds where multiprocessors would be idle", "[plan]") {
  // 204 tiles, and operands that do not fit into the L2 cache: the four of a column are walked through together.
  const SharedLaunch wide = launch_of({128, 256, 64}, 424, 13008, 7760);
  CHECK(wide.sharing == Sharing::grid);
  CHECK(wide.blocks == 132);
  CHECK(wide.abreast == 4);
  const SharedLaunch part = launch_of({128, 128, 64}, 496, 2176, 4400);  // 68 tiles, of operands that fit
  CHECK(part.sharing == Sharing::grid);
  CHECK(part.blocks == 132);
  CHECK(part.abreast == 1);
  // Measured on an H200: these lose by it.
  CHECK(launch_of({128, 128, 64}, 496, 2496, 3584).sharing == Sharing::none);
  CHECK(launch_of({128, 192, 64}, 7272, 1536, 2400).sharing == Sharing::none);
  CHECK(launch_of({128, 256, 64}, 8192, 8192, 8192).sharing == Sharing::none);  // 15.5 waves
  CHECK(launch_of({128, 128, 64}, 1408, 1536, 4096).sharing == Sharing::none);  // one wave
  CHECK(launch_of({128, 128, 64}, 1408, 1664, 192).sharing == Sharing::none);   // three rounds
  CHECK(launch_of({64, 64, 64}, 16, 768, 3072).sharing == Sharing::cluster);
  // As it is asked for.
  CHECK(launch_of({128, 256, 64}, 424, 13008, 7760, SharingPolicy::none).sharing == Sharing::none);
  CHECK(launch_of({128, 256, 64}, 424, 13008, 7760, SharingPolicy::cluster).sharing == Sharing::none);
  CHECK(launch_of({64, 64, 64}, 16, 768, 3072, SharingPolicy::grid).sharing == Sharing::grid);
  CHECK(launch_of({64, 64, 64}, 16, 768, 3072, SharingPolicy::cluster).sharing == Sharing::cluster);
  CHECK(launch_of({128, 256, 64}, 8192, 8192, 8192, SharingPolicy::grid).sharing == Sharing::grid);
  CHECK(launch_of({64, 64, 64}, 64, 64, 128, SharingPolicy::grid).sharing == Sharing::none);
  // Numbers of rounds are counted in 32 bits; nobody shares none.
  CHECK(launch_of({64, 64, 64}, 1 << 20, 1 << 20, 4096, SharingPolicy::grid).sharing == Sharing::none);
  CHECK(launch_of({64, 64, 64}, 64, 64, 0, SharingPolicy::grid).sharing == Sharing::none);
  CHECK(launch_of({64, 64, 64}, 0, 64, 640, SharingPolicy::grid).sharing == Sharing::none);
}

TEST_CASE("the model of times knows what a grid shares", "[plan]") {
  const ProductTarget on{Target::of(Arch::sm_90a), multiprocessors};
  ProductTarget alone = on;
  alone.sharing = SharingPolicy::none;
  const auto chosen = [](const ProductTarget& target, std::int64_t m, std::int64_t n, std::int64_t k) {
    return choose(ProductFamily::plain, {m, n, k}, ElementType::bf16, target);
  };
  CHECK(chosen(on, 424, 13008, 7760) == ProductTiles{128, 256, 64});
  // Of 1.05 waves of small tiles none are needed any more.
  CHECK(launch_of(chosen(on, 1200, 3584, 4096), 1200, 3584, 4096).sharing == Sharing::grid);
  CHECK(chosen(on, 8192, 8192, 8192) == chosen(alone, 8192, 8192, 8192));
}

TEST_CASE("of a grid each block walks through its share of all rounds", "[plan]") {
  for (const ProductTiles& tile : wgmma_tiles()) {
    const Plan plan = plan_of(product<bf16>(tile));
    INFO(tile.m << " x " << tile.n);
    REQUIRE(plan.shared_by_grid());
    CHECK(to_string(plan).find("all blocks of threads share the rounds of all blocks of the grid") !=
          std::string::npos);
    CHECK(plan.phases[0].roles[1].teams == 1);
    CHECK(plan.phases[0].roles[1].warps == (tile.m % 128 ? 4 : 8));
    CHECK(plan.workspace_bytes == 4 * tile.m * tile.n);
    CHECK(count<ShareRounds>(plan) == 2);
    CHECK(count<ClusterBarrier>(plan) == 0);
    for (const int of_each : {count<PutPart>(plan), count<TellPart>(plan), count<EachPart>(plan),
                              count<AwaitPart>(plan), count<AddParts>(plan)})
      CHECK(of_each == 1);
    // Nothing of a ring is lost to it.
    const Graph graph = run_passes(product<bf16>(tile));
    CHECK(plan.rings[RingId{0}].stages >=
          make_plan(graph, dense_variant(graph), Arch::sm_90a, {}).rings[RingId{0}].stages);
  }
  CHECK_FALSE(plan_of(product<f32>({16, 64, 32})).shared_by_grid());
  const Graph graph = run_passes(product<bf16>({128, 128, 64}));
  Variant variant = shared_variant(graph);
  CHECK(generate(graph, variant, Arch::sm_90a).sharing == Sharing::grid);
  CHECK(generate(graph, variant, Arch::sm_80).sharing == Sharing::none);
  variant.wide = true;
  CHECK(generate(graph, variant, Arch::sm_90a).sharing == Sharing::none);
}

TEST_CASE("kernels of a shared grid compile without a spill", "[generate]") {
  if (!nvrtc_here()) return;
  const std::vector<ProductTiles> tiles = wgmma_tiles();
  std::vector<std::string> wrong(tiles.size() * 3);
  in_parallel(wrong.size(), [&](std::size_t i) {
    if (!in_share(i)) return;
    const ProductTiles& tile = tiles[i / 3];  // f16 and bf16 in turn: one word of an instruction tells them apart
    const Graph graph = run_passes(i % 6 == 0   ? product<f16>(tile)
                                   : i % 3 == 0 ? product<bf16>(tile)
                                   : i % 3 == 1 ? with_residual(tile)
                                                : kernels::linear_gelu<bf16, bf16>(tile).graph());
    wrong[i] = compile_check(generate(graph, shared_variant(graph), Arch::sm_90a), Arch::sm_90a);
  });
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    INFO(tiles[i / 3].m << " x " << tiles[i / 3].n << ", " << i % 3);
    CHECK(wrong[i] == "");
  }
}

TEST_CASE("the verifier names what is wrong between the blocks of a shared grid", "[plan]") {
  struct Fault {
    const char* name;
    std::function<void(Plan&)> plant;
    const char* says;
  };
  const auto in_part = [](Plan& p, bool first) -> OfPart& {
    for (StepPlace place : places_of<OfPart>(p))
      if (OfPart& part = place.step().action.get<OfPart>(); part.first == first) return part;
    throw std::runtime_error("no such part");
  };
  const Fault faults[] = {
      {"it is said before all have put",
       [&](Plan& p) { in_part(p, false).body.erase(in_part(p, false).body.begin() + 1); }, "may not all be put"},
      {"nobody says it", [&](Plan& p) { in_part(p, false).body.pop_back(); }, "role consumer"},
      {"all say it",
       [&](Plan& p) {
    Body& body = in_part(p, false).body;
    body.back() = {TellPart{}};
  }, "256 threads say"},
      {"nobody puts", [&](Plan& p) { in_part(p, false).body.clear(); }, "does not put sums"},
      {"the first block puts", [&](Plan& p) { in_part(p, false).first = true; }, "puts nothing"},
      {"the others add up", [&](Plan& p) { in_part(p, true).first = false; }, "no other blocks of a tile"},
      {"nobody waits", [](Plan& p) { the<EachPart>(p, 0).body.erase(the<EachPart>(p, 0).body.begin()); },
       "may not be there"},
      {"one has waited, and the others go on",
       [](Plan& p) { the<EachPart>(p, 0).body.erase(the<EachPart>(p, 0).body.begin() + 1); }, "may not be there"},
      {"all wait", [](Plan& p) { the<EachPart>(p, 0).body[0] = {AwaitPart{}}; }, "256 threads wait"},
      {"nobody adds up", [](Plan& p) { the<EachPart>(p, 0).body.pop_back(); }, "is not added"},
      {"sums are stored without those of others", [](Plan& p) { place_of<EachPart>(p, 0).drop(); },
       "without what other blocks add"},
      {"parts of other rounds",
       [](Plan& p) { the<EachPart>(p, 0).rounds = {.kind = codegen::Operand::Kind::literal, .literal = 7}; },
       "of other rounds"},
      {"a share of other rounds",
       [](Plan& p) { the<ShareRounds>(p, 0).rounds = {.kind = codegen::Operand::Kind::literal, .literal = 7}; },
       "share of other rounds"},
      {"a block runs all rounds", [](Plan& p) { the<Loop>(p, 0).count = the<ShareRounds>(p, 0).rounds; }, "all rounds"},
      {"a share that nobody makes", [](Plan& p) { place_of<ShareRounds>(p, 1).drop(); }, "nothing has made"},
      {"another number says who is first", [&](Plan& p) { in_part(p, true).share = the<ShareRounds>(p, 1).count; },
       "another number"},
      {"rounds are shared by no grid", [](Plan& p) { p.phases[0].schedule.sharing = Sharing::none; }, "the kernel has"},
      {"rounds that nobody counts", [](Plan& p) { the<TileLoop>(p, 0).rounds = {}; }, "no grid shares"},
      {"sums are put where others do not read", [](Plan& p) { p.scratch[ScratchId{0}].in_workspace = false; },
       "do not read"},
      {"sums are put where there is no room", [](Plan& p) { p.scratch[ScratchId{0}].bytes /= 2; }, "scratch"},
      {"no flags",
       [](Plan& p) {
    std::erase_if(p.parameters, [](const KernelParameter& one) { return one.kind == KernelParameter::Kind::flags; });
  }, "parameters"},
      {"two teams", [](Plan& p) { p.phases[0].roles[1].teams = 2; }, "teams"},
  };
  const Plan right = plan_of(product<bf16>({128, 128, 64}));
  CHECK(violations(right).empty());
  for (const Fault& fault : faults) {
    Plan plan = right;
    fault.plant(plan);
    std::string all;
    for (const std::string& one : violations(plan)) all += one + "\n";
    INFO(fault.name << ": " << all);
    CHECK(all.find(fault.says) != std::string::npos);
  }
}
