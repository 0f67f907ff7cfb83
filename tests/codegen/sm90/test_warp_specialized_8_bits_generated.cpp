// Generated kernels of warp-specialized matmuls of 8-bit operands, compiled and emulated.
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "emulator/emulator.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "matmuls_8_bits.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/plan_steps.hpp"

namespace test_warp_specialized_8_bits_generated {

using namespace matmuls_8_bits;

TEST_CASE("warp-specialized matmuls of 8 bits compile without spills", "[generate]") {
  std::vector<KernelSource> sources;
  const auto add = [&](const Graph& graph, const Changes& change = {}) {
    const Plan plan = plan_with(graph, change);
    CHECK(why_not(plan) == "");
    sources.push_back(kernel_source(plan));
  };
  const Changes multicast = [](Variant& variant) { variant.multicast = true; };
  for (const MatmulTiles& tiles : wgmma_tiles(ElementType::f8e4m3)) {
    if (tiles.m > 128) continue;
    INFO(text(tiles, {}));
    add(plain<f8e4m3, f32>(tiles).graph());
    add(plain<f8e5m2, bf16>(tiles).graph(), split(SplitK::stream_k));
    add(plain<f8e4m3, bf16>(tiles).graph(), split(SplitK::cluster));
    add(plain<f8e4m3, f32>(tiles).graph(), multicast);
    if (tiles.n < 256) add(plain<f8e5m2, f32>(tiles).graph(), unaligned(2, 4));
    add(scaled<f8e4m3, bf16>(tiles).graph());
    add(scaled<f8e4m3, f32>(tiles).graph(), split(SplitK::stream_k));
    add(scaled<f8e5m2, bf16>(tiles).graph(), split(SplitK::cluster));
    add(biased<f8e4m3>(tiles).graph());
  }
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 384}, {64, 64, 512}, {64, 96, 128}, {64, 192, 256}})
    add(plain<f8e4m3, f32>(tiles).graph());
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 128}, {64, 128, 128}, {64, 96, 256}})
    add(gated<f8e4m3>(tiles).graph());
  for (const MatmulTiles& tiles : wgmma_tiles(ElementType::i8)) {
    INFO(text(tiles, {}));
    add(plain<i8, i32>(tiles).graph());
    add(plain<u8, f32>(tiles).graph(), multicast);
    add(scaled<i8, bf16>(tiles).graph());
    add(biased<i8>(tiles).graph());
  }
  add(gated<i8>({64, 128, 128}).graph());
  check_compiled(sources);
}

#ifdef TESSERA_HAS_EMULATOR
namespace {

/// Launches whose kernels are compiled together.
class Emulations {
 public:
  using Check = std::function<void()>;

  /// `problem` and what `arguments` refer to must stay as they are until run().
  void add(const Graph& traced, const std::vector<Argument>& arguments, const MatmulTiles& tiles, const Sizes& of,
           Check check, const RunOptions& options = {}, const Changes& change = {}) {
    Launch launch{run_passes(traced), arguments, {}, options, std::move(check), 0, text(tiles, of)};
    launch.grid = {(of.m + tiles.m - 1) / tiles.m, (of.n + tiles.n - 1) / tiles.n};
    Variant variant = classify(launch.graph, arguments);
    if (change) change(variant);
    add(std::move(launch), generate(launch.graph, variant, Arch::sm_90a));
  }
  /// y = x w; `wrong`: the result is wrong.
  template <class T, class O>
  void product(const MatmulTiles& tiles, const Sizes& of, const RunOptions& options = {}, const Changes& change = {}) {
    const auto problem = std::make_shared<Problem<T>>(of);
    const auto y = std::make_shared<std::vector<O>>(nines<O>(of));
    add(plain<T, O>(tiles).graph(), {problem->x_argument(), problem->w_argument(), dense_argument(*y, {of.m, of.n})},
        tiles, of, [=] { CHECK(problem->difference(*y) == ""); }, options, change);
  }
  void run() {
    const Emulator emulator = Emulator::compile(sources_);
    for (const Launch& launch : launches_) {
      INFO(launch.name << " of " << sources_[launch.kernel].author);
      for (const std::uint64_t seed : {launch.options.seed, launch.options.seed + 100}) {  // two orders
        RunOptions options = launch.options;
        options.seed = seed;
        CHECK(emulator.run(launch.kernel, launch.graph, launch.arguments, launch.grid, options).text() == "");
        launch.check();
      }
    }
    launches_.clear();
  }
  std::size_t kernels() const { return sources_.size(); }

 private:
  struct Launch {
    Graph graph;
    std::vector<Argument> arguments;
    std::vector<std::int64_t> grid;
    RunOptions options;
    Check check;
    std::size_t kernel;
    std::string name;
  };
  void add(Launch launch, KernelSource source) {
    CHECK(source.plan.find("not warp-specialized") == std::string::npos);
    const auto found = std::ranges::find(sources_, source.text, &KernelSource::text);
    launch.kernel = static_cast<std::size_t>(found - sources_.begin());
    launch.options.seed = launches_.size() + 1;
    if (found == sources_.end()) sources_.push_back(std::move(source));
    launches_.push_back(std::move(launch));
  }

  std::vector<KernelSource> sources_;
  std::vector<Launch> launches_;
};

constexpr RunOptions one_block{.persistent_blocks = 1};

}  // namespace

TEST_CASE("generated kernels sum products of fp8 exactly", "[emulator]") {
  Emulations all;
  // Each kernel also has more grid tiles than CTAs, and one to more k-iterations than stages. Extents along k have one
  // alignment, so that a kernel serves all of them.
  all.product<f8e4m3, f32>({64, 64, 128}, {200, 136, 300});
  all.product<f8e4m3, f32>({64, 64, 128}, {1, 72, 108});
  all.product<f8e4m3, f32>({64, 64, 128}, {129, 68, 128 * 14 + 12, Numbers::positive}, one_block);
  all.product<f8e5m2, bf16>({128, 128, 128}, {200, 136, 300});
  all.product<f8e5m2, bf16>({128, 128, 128}, {264, 264, 124}, one_block);
  all.product<f8e5m2, bf16>({128, 128, 128}, {136, 40, 128 * 9 - 4, Numbers::positive});
  all.product<f8e4m3, f32>({128, 256, 128}, {200, 264, 300, Numbers::positive}, one_block);
  all.product<f8e4m3, f32>({128, 256, 128}, {40, 200, 128 * 6 + 12, Numbers::positive});
  all.product<f8e4m3, f32>({128, 192, 128}, {136, 264, 700, Numbers::positive});
  all.product<f8e5m2, f32>({64, 128, 256}, {136, 200, 604, Numbers::positive});
  all.product<f8e5m2, f32>({64, 128, 256}, {64, 128, 252});
  all.product<f8e4m3, bf16>({128, 128, 256}, {136, 200, 1212, Numbers::positive});
  all.product<f8e4m3, f32>({64, 64, 512}, {72, 136, 604, Numbers::positive});
  all.product<f8e4m3, f32>({64, 64, 512}, {64, 64, 2108}, one_block);
  all.product<f8e4m3, f32>({64, 96, 128}, {72, 104, 412, Numbers::positive});
  all.product<f8e5m2, f32>({128, 192, 256}, {136, 200, 1212, Numbers::positive});  // two stages
  CHECK(all.kernels() == 9);
  all.run();
}

TEST_CASE("generated kernels sum products of integers of 8 bits", "[emulator]") {
  Emulations all;
  all.product<i8, i32>({128, 128, 128}, {200, 136, 300, Numbers::all});
  all.product<i8, i32>({128, 128, 128}, {136, 264, 128 * 8 - 4, Numbers::all}, one_block);
  all.product<i8, i32>({256, 128, 128}, {264, 136, 400, Numbers::all});
  all.product<u8, i32>({64, 256, 256}, {72, 264, 300, Numbers::all});
  all.product<u8, f32>({128, 192, 128}, {40, 200, 500, Numbers::all});
  CHECK(all.kernels() == 4);

  const Sizes of{200, 136, 300, Numbers::all};
  constexpr MatmulTiles tiles{128, 128, 128};
  Problem<i8> problem(of);
  std::vector<i32> bias, y = nines<i32>(of);
  for (int j = 0; j < of.n; ++j)
    bias.push_back(j % 2 ? std::numeric_limits<i32>::max() - j : std::numeric_limits<i32>::min() + j);
  all.add(biased<i8>(tiles).graph(),
          {problem.x_argument(), problem.w_argument(), dense_argument(bias, {of.n}), dense_argument(y, {of.m, of.n})},
          tiles, of, [&] {
    int wrapped = 0;
    CHECK(problem.difference(y, [&](int, int j, double sum) {
      const std::int64_t exact = static_cast<std::int64_t>(sum) + bias[static_cast<std::size_t>(j)];
      wrapped += exact != static_cast<i32>(static_cast<std::uint32_t>(exact));
      return static_cast<double>(static_cast<i32>(static_cast<std::uint32_t>(exact)));
    }) == "");
    CHECK(wrapped > of.m * of.n / 4);
  });
  std::vector<f32> rows = multiples<f32>(of.m, 5, 0.25), columns = multiples<f32>(of.n, 9, 2);
  std::vector<bf16> scales = nines<bf16>(of);
  all.add(scaled<i8, bf16>(tiles).graph(),
          {problem.x_argument(), problem.w_argument(), dense_argument(rows, {of.m, 1}), dense_argument(columns, {of.n}),
           dense_argument(scales, {of.m, of.n})},
          tiles, of, [&] {
    CHECK(problem.difference(scales, [&](int i, int j, double sum) {
      return sum * rows[static_cast<std::size_t>(i)] * columns[static_cast<std::size_t>(j)];
    }) == "");
  });
  all.run();
}

TEST_CASE("generated kernels promote sums of fp8 beside scales, a bias and another matmul", "[emulator]") {
  Emulations all;
  const Sizes of{200, 136, 300, Numbers::positive};
  Problem<f8e4m3> problem(of), other({of.m, of.n, of.k, Numbers::small, -1, 1});
  other.x_values() = problem.x_values();
  std::vector<f32> rows = multiples<f32>(of.m, 5, 0.25), columns = multiples<f32>(of.n, 9, 2),
                   bias = multiples<f32>(of.n, 17, 100);
  std::vector<bf16> of_scaled = nines<bf16>(of);
  std::vector<f32> of_biased = nines<f32>(of), gate = nines<f32>(of), up = nines<f32>(of), alone = nines<f32>(of);
  const auto arguments = [&](std::initializer_list<Argument> others) {
    std::vector<Argument> all{problem.x_argument(), problem.w_argument()};
    all.insert(all.end(), others);
    return all;
  };
  for (const MatmulTiles& tiles : {MatmulTiles{128, 128, 128}, {64, 256, 128}})
    all.add(scaled<f8e4m3, bf16>(tiles).graph(),
            arguments({dense_argument(rows, {of.m, 1}), dense_argument(columns, {of.n}),
                       dense_argument(of_scaled, {of.m, of.n})}),
            tiles, of, [&] {
      CHECK(problem.difference(of_scaled, [&](int i, int j, double sum) {
        return sum * rows[static_cast<std::size_t>(i)] * columns[static_cast<std::size_t>(j)];
      }) == "");
      std::ranges::fill(of_scaled, bf16(99.0f));
    });
  const MatmulTiles tiles{64, 128, 128};
  all.add(biased<f8e4m3>(tiles).graph(),
          arguments({dense_argument(bias, {of.n}), dense_argument(of_biased, {of.m, of.n})}), tiles, of, [&] {
    CHECK(problem.difference(of_biased,
                             [&](int, int j, double sum) { return sum + bias[static_cast<std::size_t>(j)]; }) == "");
  });
  all.add(plain<f8e4m3, f32>(tiles).graph(),
          {other.x_argument(), other.w_argument(), dense_argument(alone, {of.m, of.n})}, tiles, of, [] {});
  all.add(gated<f8e4m3>(tiles).graph(),
          arguments({other.w_argument(), dense_argument(gate, {of.m, of.n}), dense_argument(up, {of.m, of.n})}), tiles,
          of, [&] {
    CHECK(problem.difference(gate) == "");
    CHECK(up == alone);
  });
  all.run();
}

TEST_CASE("CTAs that share the k-iterations of fp8, or right operands, sum exactly", "[emulator]") {
  Emulations all;
  const RunOptions cluster{.blocks_in_flight = 2, .persistent_blocks = 2, .cluster = 3},
      stream_k{.blocks_in_flight = 2, .persistent_blocks = 5}, pairs{.persistent_blocks = 2};
  all.product<f8e4m3, f32>({64, 64, 128}, {72, 136, 1100, Numbers::positive}, cluster, split(SplitK::cluster));
  all.product<f8e5m2, f32>({128, 128, 128}, {136, 72, 800, Numbers::positive}, cluster, split(SplitK::cluster));
  all.product<f8e4m3, f32>({64, 64, 128}, {72, 136, 1100, Numbers::positive}, stream_k, split(SplitK::stream_k));
  all.product<f8e4m3, bf16>({128, 256, 128}, {136, 264, 700, Numbers::positive}, stream_k, split(SplitK::stream_k));
  all.product<f8e4m3, f32>({128, 128, 128}, {300, 136, 300, Numbers::positive}, pairs,
                           [](Variant& variant) { variant.multicast = true; });
  all.run();
}

TEST_CASE("errors of promoted sums of fp8 are small", "[emulator]") {
  Emulations all;
  const auto add = [&]<class T>(T, const MatmulTiles& tiles) {
    const Sizes of{136, 136, 1100, Numbers::fractional};
    const auto problem = std::make_shared<Problem<T>>(of);
    const auto y = std::make_shared<std::vector<f32>>(nines<f32>(of));
    all.add(plain<T, f32>(tiles).graph(),
            {problem->x_argument(), problem->w_argument(), dense_argument(*y, {of.m, of.n})}, tiles, of, [=] {
      const auto [most, mean] = problem->errors(*y);
      CHECK(most < 0x1p-6);
      CHECK(mean < 0x1p-9);
      CHECK(mean > 0);  // wgmma keeps 14 bits
    });
  };
  add(f8e4m3(), {128, 128, 128});
  add(f8e5m2(), {64, 128, 256});
  all.run();
}

TEST_CASE("sums of fp8 that are not promoted are found by the results", "[emulator]") {
  const Graph traced = plain<f8e4m3, f32>({64, 64, 128}).graph();
  const Graph graph = run_passes(traced);
  const Sizes of{64, 64, 1000, Numbers::positive};
  Problem<f8e4m3> problem(of);
  std::vector<f32> y = nines<f32>(of);
  const std::vector<Argument> arguments{problem.x_argument(), problem.w_argument(), dense_argument(y, {of.m, of.n})};
  const Plan right = make_plan(graph, classify(graph, arguments), Arch::sm_90a, {.verify = true});
  Plan dropped = right, added = right;
  place_of<PromoteSums>(dropped, 1).drop();
  // wgmma adds up all k-iterations, whose sums are promoted at the end.
  for (const std::size_t part : {0, 1}) {
    the<Wgmma>(added, part).overwrites = false;
    place_of<PromoteSums>(added, 0).drop();
  }
  StepPlace last = place_of<PromoteSums>(added, 0);
  last.body->insert(last.body->begin() + static_cast<std::ptrdiff_t>(last.index), Step(last.step()));
  the<PromoteSums>(added, 0).sums = the<Wgmma>(added, 0).out;
  const std::vector<KernelSource> sources{kernel_source(right), kernel_source(dropped), kernel_source(added)};
  const Emulator emulator = Emulator::compile(sources);
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    CHECK(emulator.run(i, graph, arguments, std::vector<std::int64_t>{1, 1}, one_block).text() == "");
    wrong.push_back(problem.difference(y));
    if (i == 2) CHECK(problem.errors(y).most < 0x1p-9);  // some bits are lost
  }
  CHECK(wrong[0] == "");
  CHECK(wrong[1] != "");
  CHECK(wrong[2] != "");
}
#endif

}  // namespace test_warp_specialized_8_bits_generated
