// Loads before the PDL wait: which operands are prefetched, that results stay the same, and how the verifier and the
// emulator report planted faults.
#include <cstring>
#include <numeric>

#include "codegen/kernel_source.hpp"
#include "codegen/passes.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/emulating.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"
#include "tessera/tessera.hpp"

namespace test_prefetch_inputs {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

using X = In<bf16, 2>;
using Y = tessera::internal::Out<f32, 2>;

/// A matmul with tiles of 64, and no epilogue.
template <class W>
Graph plain() {
  return kernel("plain", [](X x, W w, Y y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64))) {
      const Tile<bf16, 2> right = load(w, {k, n}, {64, 64});
      acc = mma(load(x, {m, k}, {64, 64}), right, acc);
    }
    store(y, {m, n}, acc);
  }).graph();
}

/// Two matmuls with the same left operand.
Graph gated() {
  return kernel("gated", [](X x, X gate, X up, Y y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var a = zeros<f32>({64, 64}), b = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64))) {
      const Tile<bf16, 2> left = load(x, {m, k}, {64, 64});
      a = mma(left, load(gate, {k, n}, {64, 64}), a);
      b = mma(left, load(up, {k, n}, {64, 64}), b);
    }
    const Tile<f32, 2> g = a, u = b;
    store(y, {m, n}, g * u);
  }).graph();
}

/// The left operand times a scale for each column, which threads read.
Graph scaled_left() {
  return kernel("scaled_left", [](X x, In<f32, 1> scale, X w, Y y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64))) {
      const Tile<f32, 2> left = cast<f32>(load(x, {m, k}, {64, 64})) * load(scale, {k}, {64});
      acc = mma(cast<bf16>(left), load(w, {k, n}, {64, 64}), acc);
    }
    store(y, {m, n}, acc);
  }).graph();
}

void shares(Variant& variant, SplitK split_k) { variant.split_k = split_k; }

bool waits_in_roles(const Plan& plan) {
  for (const Role& role : plan.phases[0].roles)
    if (std::ranges::count_if(role.body, [](const Step& step) { return step.action.is<GridDependencyWait>(); }) != 1)
      return false;
  return true;
}

}  // namespace

TEST_CASE("right operands are prefetched before the wait where loops and the producer read no other tensors", "[plan]") {
  for (const SplitK split_k : {SplitK::none, SplitK::cluster}) {
    const Plan plan = plan_with(plain<X>(), [&](Variant& v) { shares(v, split_k); });
    CHECK(plan.prefetched_before_wait() == std::vector{1});
    CHECK(waits_in_roles(plan));
    CHECK(plan.waits_for_previous());
    CHECK(count<PrefetchBeforeWait>(plan) == 1);
    CHECK(plan.parameters.back().kind == KernelParameter::Kind::may_prefetch);
  }
  CHECK(plan_with(gated()).prefetched_before_wait() == std::vector{1, 2});
  // Rows of 50257 elements are copied by threads.
  CHECK(plan_with(plain<X>(), [](Variant& v) { v.tensors[1].tma_addressable = false; }).prefetched_before_wait().empty());
  CHECK(plan_with(plain<X>(), [](Variant& v) { shares(v, SplitK::stream_k); }).prefetched_before_wait().empty());
  CHECK(plan_with(plain<InOut<bf16, 2>>()).prefetched_before_wait().empty());
  CHECK(plan_with(plain<X>(), {}, Arch::sm_80).prefetched_before_wait().empty());
  // Consumers read the bias and the residual behind the wait.
  for (const Graph& graph : {kernels::linear<bf16, bf16>({64, 64, 64}).executable().graph(),
                             kernels::linear_residual<bf16, bf16>({64, 64, 64}).executable().graph()}) {
    const Plan biased = plan_with(graph);
    CHECK(biased.phases[0].roles.size() == 2);
    CHECK(biased.prefetched_before_wait() == std::vector{1});
    CHECK(waits_in_roles(biased));
  }
  // The producer reads which rows are counted; consumers read scales in the loop.
  const Plan counted = plan_with(kernels::linear_qkv<bf16, bf16>({64, 64, 64}).executable().graph());
  CHECK(counted.phases[0].roles.size() == 2);
  CHECK(counted.prefetched_before_wait().empty());
  CHECK(counted.waits_for_previous());
  const Plan scaled = plan_with(scaled_left());
  CHECK(scaled.phases[0].roles.size() == 2);
  CHECK(scaled.prefetched_before_wait().empty());
  CHECK_FALSE(scaled.waits_for_previous());
  CHECK(kernel_source(plan_with(plain<X>())).prefetched_before_wait == std::vector{1});
}

TEST_CASE("the verifier reports errors of prefetches before the wait", "[plan]") {
  // The wait of a role, which comes after the prefetch.
  const auto wait_of = [](Plan& p, std::size_t role) { return place_of<GridDependencyWait>(p, role); };
  const PlantedFault faults[] = {
      {"a role does not wait", [&](Plan& p) { wait_of(p, 1).drop(); }, "not all roles have a grid dependency wait"},
      {"a role waits twice",
       [&](Plan& p) { wait_of(p, 0).body->insert(wait_of(p, 0).body->begin(), {GridDependencyWait{}}); },
       "second grid dependency wait"},
      {"a role waits after its tiles", [&](Plan& p) { wait_of(p, 1).move(static_cast<std::ptrdiff_t>(2)); },
       "ran other steps before"},
      {"all waited before", [&](Plan& p) { p.phases[0].prologue.push_back({GridDependencyWait{}}); },
       "second grid dependency wait"},
      {"the prefetch comes after the wait", [&](Plan& p) { place_of<PrefetchBeforeWait>(p).move(1); },
       "the grid dependency wait comes earlier"},
      {"nothing is prefetched",
       [](Plan& p) {
    place_of<PrefetchBeforeWait>(p).drop();
    p.parameters.pop_back();
  }, "skips prefetched loads 1 times"},
      {"the prefetch is done twice",
       [](Plan& p) {
    const StepPlace place = place_of<PrefetchBeforeWait>(p);
    place.body->insert(place.body->begin(), place.step());
  }, "2 times"},
      {"prefetched data is loaded again",
       [](Plan& p) { place_of<IfNotPrefetched>(p).replace(the<IfNotPrefetched>(p).body); },
       "skips prefetched loads 0 times"},
      {"a missing box",
       [](Plan& p) {
    place_of<TmaLoad>(p).drop();
    p.parameters.pop_back();
  }, "other boxes"},
      {"another index", [](Plan& p) { the<TmaLoad>(p).at[0].offset = 8; }, "other boxes"},
      {"rows and columns swapped",
       [](Plan& p) {
    auto& at = the<TmaLoad>(p).at;
    std::swap(at[0].index, at[1].index);
  }, "other boxes"},
      {"the CTA's other index",
       [](Plan& p) {
    for (Value& value : p.values)
      if (BlockIndex* const block = std::get_if<BlockIndex>(&p.storages[value.storage].known);
          block && block->axis == 0)
        the<TmaLoad>(p).at[0].index.value = ValueId{static_cast<int>(&value - &*p.values.begin())};
  }, "other boxes"},
      {"two stages at a time", [](Plan& p) { the<AdvanceStage>(p).by.literal = 2; }, "advances by one stage"},
      {"as many k-iterations as stages",
       [](Plan& p) { the<Loop>(p).count = {.kind = Operand::Kind::literal, .literal = 12}; }, "other iterations"},
      {"another part of the stage", [](Plan& p) { the<TmaLoad>(p, 1).offset += 1024; }, "other boxes"},
      {"nobody expects it", [](Plan& p) { place_of<ArriveExpectTx>(p).drop(); }, "other boxes"},
      {"more k-iterations than stages", [](Plan& p) { the<PrefetchBeforeWait>(p).most += 1; },
       "k-iterations are prefetched into"},
      {"a tensor that the launch writes", [](Plan& p) { p.tensors[1].access = Access::in_out; },
       "the launch writes it"},
      {"a launch that passes no parameter", [](Plan& p) { p.parameters.pop_back(); }, "parameters"},
      {"all threads count", [](Plan& p) { place_of<ElectOne>(p).replace(the<ElectOne>(p).body); },
       "threads count prefetched"},
      {"stream-K tiles",
       [](Plan& p) {
    p.phases[0].schedule.split_k = SplitK::stream_k;
    for (const auto kind : {KernelParameter::Kind::flags, KernelParameter::Kind::lockstep_rows})
      p.parameters.push_back({kind, 0, 0});
  }, "other grid tiles"},
  };
  check_reported(plan_with(plain<X>()), faults);
}

#ifdef TESSERA_HAS_EMULATOR
namespace {

/// x [m,k] times w [k,n], with small whole numbers, whose sums are exact.
struct Exact {
  Exact(std::int64_t m, std::int64_t n, std::int64_t k) : m(m), n(n), k(k) {
    const auto number = [](std::size_t i) { return static_cast<float>(static_cast<int>(i * 7919 % 11) - 5); };
    for (std::size_t i = 0; i < static_cast<std::size_t>(m * k); ++i) x.emplace_back(number(i));
    for (std::size_t i = 0; i < static_cast<std::size_t>(k * n); ++i) w.emplace_back(number(i + 3));
  }
  Report run(const Emulator& emulator, std::size_t index, const Graph& graph, const RunOptions& options) {
    y.assign(static_cast<std::size_t>(m * n), -1e30f);
    const std::vector<Argument> arguments{dense_argument(x, {m, k}), dense_argument(w, {k, n}),
                                          dense_argument(y, {m, n})};
    return emulator.run(index, graph, arguments, std::vector<std::int64_t>{(m + 63) / 64, (n + 63) / 64}, options);
  }
  int wrong() const {
    int wrong = 0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += static_cast<float>(x[static_cast<std::size_t>(i * k + l)]) *
                 static_cast<float>(w[static_cast<std::size_t>(l * n + j)]);
        wrong += sum != y[static_cast<std::size_t>(i * n + j)];
      }
    return wrong;
  }

  std::int64_t m, n, k;
  std::vector<bf16> x, w;
  std::vector<float> y;
};

}  // namespace

TEST_CASE("prefetches before the wait load the same data", "[emulator]") {
  const Graph graph = run_passes(plain<X>());
  std::vector<KernelSource> sources;
  for (const SplitK split_k : {SplitK::none, SplitK::cluster})
    sources.push_back(kernel_source(plan_with(plain<X>(), [&](Variant& v) { shares(v, split_k); })));
  const Emulator emulator = Emulator::compile(sources);
  // Fewer k-iterations than stages, as many, more; ragged in each way.
  for (const std::int64_t k : {40, 64 * 12, 64 * 13 + 8})
    for (const std::int64_t m : {24, 136}) {
      Exact exact(m, 136, k);
      for (std::size_t kernel = 0; kernel < sources.size(); ++kernel)
        for (const bool ahead : {true, false})
          for (const int blocks : {1, 3}) {
            INFO(m << " x " << k << ", kernel " << kernel << ", ahead " << ahead << ", " << blocks << " blocks");
            const int cluster = kernel == 1 && k > 64 ? 3 : 1;
            CHECK(exact
                      .run(emulator, kernel, graph,
                           {.seed = 1 + static_cast<std::uint64_t>(k),
                            .persistent_blocks = blocks,
                            .cluster = cluster,
                            .may_prefetch = ahead})
                      .text() == "");
            CHECK(exact.wrong() == 0);
          }
    }
}

TEST_CASE("faults in prefetches before the wait are found without the verifier", "[emulator]") {
  struct Planted {
    const char* name;
    const char* says;  ///< reported by the emulator; "": no error, but wrong results
    Plant plant;
  };
  const Planted all[] = {
      {"it is loaded once more", "once too often",
       [](Plan& p) { place_of<IfNotPrefetched>(p).replace(the<IfNotPrefetched>(p).body); }},
      {"nobody expects it", "bytes", [](Plan& p) { place_of<ArriveExpectTx>(p).drop(); }},
      {"one stage gets all", "once too often", [](Plan& p) { place_of<AdvanceStage>(p).drop(); }},
      {"rows of another k-iteration", "", [](Plan& p) { the<TmaLoad>(p).at[1].offset = 64; }},
      {"columns of another tile", "", [](Plan& p) { the<TmaLoad>(p).at[0].offset = 64; }},
      {"more k-iterations than stages", "once too often", [](Plan& p) { the<PrefetchBeforeWait>(p).most += 1; }},
  };
  const Graph graph = run_passes(plain<X>());
  std::vector<KernelSource> sources;
  for (const Planted& planted : all) {
    Plan plan = plan_with(plain<X>());
    planted.plant(plan);
    sources.push_back(kernel_source(plan));
  }
  const Emulator emulator = Emulator::compile(sources);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Exact exact(136, 136, 64 * 14);
    const Report report = exact.run(emulator, i, graph, {.persistent_blocks = 1});
    INFO(all[i].name);
    check_found(report, all[i].says, exact.wrong() > 0);
  }
}
#endif

}  // namespace test_prefetch_inputs
