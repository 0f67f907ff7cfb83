// Plans of warp-specialized matmuls of 8-bit operands: which matmuls are, and how sums of fp8 are promoted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "matmuls_8_bits.hpp"
#include "support/catch.hpp"
#include "support/plan_steps.hpp"

namespace test_warp_specialized_8_bits_plan {

using namespace matmuls_8_bits;

TEST_CASE("matmuls of 8 bits are warp-specialized where one operand runs along k and TMA loads both", "[plan]") {
  const auto check = []<class T>(T) {
    const std::string type(name(element_type<T>));
    INFO(type);
    const auto of = [](const MatmulTiles& tiles, const Changes& change = {}) {
      return why_not(plain<T, f32>(tiles).graph(), change);
    };
    CHECK(of({128, 128, 128}) == "");
    CHECK(of({128, 128, 128}, along(0, 0)) == "");
    CHECK(of({128, 128, 128}, along(1, 0)) == "");  // swapped
    CHECK(of({128, 128, 128}, [](Variant& variant) { along(0, 0)(variant), along(1, 0)(variant); }) ==
          fmt::format("the right operand {0}; with its operands swapped, the right operand {0}",
                      "is not contiguous along k, as wgmma requires for " + type));
    const std::string by_tma = " cannot be loaded by TMA, as rows of 8-bit elements must be for wgmma";
    CHECK(of({128, 128, 128}, unaligned(0)) == "the left operand" + by_tma);
    CHECK(of({128, 128, 128}, unaligned(1)) == "the right operand" + by_tma);
    CHECK(of({128, 128, 128}, along(1, -1)) == "the right operand" + by_tma);
    CHECK(of({128, 128, 128}, unaligned(2, 4)) == "");  // threads store
    for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 64},
                                     {64, 64, 192},
                                     {64, 64, 640},
                                     {32, 64, 128},
                                     {192, 64, 128},
                                     {64, 80, 128},
                                     {64, 32, 128}})
      CHECK(of(tiles) ==
            fmt::format("no wgmma schedule for tiles of [{0},{2}] x [{2},{1}]", tiles.m, tiles.n, tiles.k));
    // Other types than fp8 are multiplied by fewer of k at a time, if all do not fit into shared memory.
    CHECK(of({128, 256, 512}) == (is_fp8(element_type<T>) ? "two stages do not fit into shared memory"
                                                          : "no wgmma schedule for tiles of [128,64] x [64,256]"));
    CHECK(of({256, 256, 128}) == "[256,256] accumulators do not fit in registers");
    CHECK(of({256, 64, 128}) == (is_fp8(element_type<T>) ? "[256,64] accumulators do not fit in registers" : ""));
  };
  check(f8e4m3()), check(f8e5m2()), check(i8()), check(u8());
}

TEST_CASE("a right operand of 8 bits may have any form", "[plan]") {
  static constexpr MatmulTiles tiles{64, 128, 128};
  using Make = std::function<Tile<f8e4m3, 2>(const In<f8e4m3, 2>& w, const Index& k, const Index& n)>;
  const auto of = [](const Make& make, const Changes& change = {}) {
    return why_not(kernel("form",
                          [=](In<f8e4m3, 2> x, In<f8e4m3, 2> w, Out<f32, 2> y) {
      auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
      Var acc = zeros<f32>({tiles.m, tiles.n});
      for (Index k : range(cdiv(x.extent(1), tiles.k))) acc = mma(left(x, m, k, tiles), make(w, k, n), acc);
      store(y, {m, n}, acc);
    }).graph(),
                   change);
  };
  const Make as_it_is = [](const auto& w, const Index& k, const Index& n) {
    return load(w, {k, n}, {tiles.k, tiles.n});
  };
  CHECK(of(as_it_is, along(1, 0)) == "");
  CHECK(of(as_it_is) == "");
  CHECK(of([](const auto& w, const Index& k, const Index& n) {
    return load(w.permute({1, 0}), {k, n}, {tiles.k, tiles.n});
  }) == "");
}

TEST_CASE("operands of 8 bits come from memory as they are", "[plan]") {
  const auto of = [](const auto& make) {
    return why_not(kernel("operands", [=](In<f8e4m3, 2> x, In<f8e4m3, 2> w, In<bf16, 2> v, Out<f32, 2> y) {
      auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
      constexpr MatmulTiles tiles{64, 64, 128};
      Var acc = zeros<f32>({64, 64});
      for (Index k : range(cdiv(x.extent(1), 128))) {
        const Tile a = left(x, m, k, tiles), b = right(w, n, k, tiles);
        const Tile c = load(v, {m, k}, {64, 128}), d = transpose(load(v, {n, k}, {64, 128}));
        const auto [of_a, of_b] = make(a, b, c, d);
        acc = mma(of_a, of_b, acc);
      }
      store(y, {m, n}, acc);
    }).graph());
  };
  using B = Tile<f8e4m3, 2>;
  const auto twice = [](const B& x) { return B(cast<f8e4m3>(cast<f32>(x) * 2.0f)); };
  const auto narrow = [](const auto& x) { return B(cast<f8e4m3>(x)); };
  CHECK(of([](const auto& a, const auto& b, const auto&, const auto&) { return std::pair<B, B>(a, b); }) == "");
  CHECK(of([=](const auto& a, const auto& b, const auto&, const auto&) { return std::pair<B, B>(twice(a), b); }) ==
        "the left operand is computed as f8e4m3");
  CHECK(of([=](const auto& a, const auto& b, const auto&, const auto&) { return std::pair<B, B>(a, twice(b)); }) ==
        "the right operand comes from 'mul'; with its operands swapped, the left operand is computed as f8e4m3");
  CHECK(of([=](const auto&, const auto& b, const auto& c, const auto&) { return std::pair<B, B>(narrow(c), b); }) ==
        "the left operand is computed as f8e4m3");
  CHECK(of([=](const auto& a, const auto&, const auto&, const auto& d) { return std::pair<B, B>(a, narrow(d)); }) ==
        "the right operand is bf16 in memory; with its operands swapped, the left operand is computed as f8e4m3");
}

namespace {

/// Steps of a plan's matmuls.
struct Promotion {
  MatmulTiles tiles;
  std::vector<int> columns;  ///< of the parts of a stage
  int stages;
};
/// Registers of a left operand, or of the sets of sums, which begin with zeros.
int registers_of(const Plan& plan, bool sums) {
  int registers = 0;
  for (const StepPlace& place : places_of<DeclareAccumulator>(const_cast<Plan&>(plan)))
    if (const auto& declared = place.step().action.get<DeclareAccumulator>(); declared.zeroed == sums)
      registers += plan.storage(declared.value).registers / plan.storage(declared.value).packed;
  return registers;
}
const std::string promoted = ", sums of 128 products promoted to f32";

}  // namespace

TEST_CASE("sums of fp8 are promoted in parts, from two sets of registers", "[plan]") {
  for (const Promotion& of : {Promotion{{64, 64, 128}, {32, 32}, 12},
                              {{64, 64, 256}, {64}, 6},
                              {{64, 64, 384}, {32, 32}, 4},
                              {{64, 64, 512}, {64}, 3},
                              {{64, 96, 128}, {48, 48}, 9},
                              {{64, 128, 128}, {64, 64}, 8},
                              {{64, 128, 256}, {64, 64}, 4},
                              {{64, 192, 128}, {96, 96}, 6},
                              {{64, 192, 256}, {96, 96}, 3},
                              {{64, 256, 128}, {64, 64, 64, 64}, 4},
                              {{128, 64, 128}, {32, 32}, 8},
                              {{128, 128, 128}, {64, 64}, 6},
                              {{128, 128, 256}, {64, 64}, 3},
                              {{128, 192, 128}, {96, 96}, 4},
                              {{128, 256, 128}, {64, 64, 64, 64}, 4}}) {
    const Plan plan = plan_with(plain<f8e4m3, f32>(of.tiles).graph());
    INFO(text(of.tiles, {}) << '\n' << tree_text(plan));
    REQUIRE(has_roles(plan));
    const Role& consumer = plan.phases[0].roles[1];
    CHECK(consumer.warps == of.tiles.m / 16);  // a warp group has 64 rows
    CHECK(consumer.consumer_groups == (of.tiles.m == 64 ? 2 : 1));
    CHECK(plan.pipelines[PipelineId{0}].stages == of.stages);
    CHECK(plan.shared_bytes <= plan.target.shared_bytes);
    const int parts = static_cast<int>(of.columns.size()) * of.tiles.k / 128;
    CHECK(count<Wgmma>(plan) == parts);
    CHECK(count<PromoteSums>(plan) == parts + 1);  // the last stage's last part, after the loop
    CHECK(count<DeclareAccumulator>(plan) == 3);
    CHECK(registers_of(plan, true) == of.columns[0]);
    CHECK(registers_of(plan, false) == 16);  // 64 rows by 128 of k
    CHECK(count<LoadFragment>(plan) == of.tiles.k / 128);
    std::vector<int> columns;
    for (const StepPlace& place : places_of<Wgmma>(const_cast<Plan&>(plan))) {
      const Wgmma& wgmma = place.step().action.get<Wgmma>();
      CHECK((wgmma.m == of.tiles.m && wgmma.k == 128 && wgmma.overwrites && !wgmma.overwrites_first && wgmma.left));
      columns.push_back(wgmma.n);
    }
    std::vector<int> expected;
    for (int k = 0; k < of.tiles.k; k += 128) expected.insert(expected.end(), of.columns.begin(), of.columns.end());
    CHECK(columns == expected);
    const int groups = of.tiles.m / 64;
    CHECK(notes(plan)[0] ==
          fmt::format("warp-specialized: {}x{}x{} f8e4m3 by wgmma, {} of {}, {} stages{}{}, 1 store by TMA", of.tiles.m,
                      of.tiles.n, of.tiles.k, groups == 1 ? "2 consumer groups" : "1 consumer group",
                      groups == 1 ? "1 warp group" : "2 warp groups", of.stages, promoted,
                      ", left operands from registers"));
    CHECK(plan.waits_for_previous());
  }
}

TEST_CASE("the text of a plan shows how sums are promoted", "[plan]") {
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  const Plan wide = plan_with(plain<f8e5m2, f32>({128, 256, 128}).graph());
  const std::string steps = tree_text(wide);
  INFO(steps);
  CHECK(has(steps, "[128,128] x [128,64] f8e5m2, wgmma"));
  for (const char* part :
       {", columns from 64", ", columns from 128", ", columns from 192", "declare accumulator mma_20_part1 = 0"})
    CHECK(has(steps, part));
  CHECK(has(tree_text(plan_with(plain<f8e5m2, f32>({64, 64, 512}).graph())), ", k from 384"));
  const auto remark = [](const Plan& plan) {
    std::vector<std::string> found;
    for (const Remark& one : plan.remarks)
      if (one.kind == remark_kind::wgmma && one.message.find(" x [") != std::string::npos) found.push_back(one.message);
    return fmt::format("{}", fmt::join(found, "; "));
  };
  const std::string from_registers = ", the left operand from registers";
  CHECK(remark(wide) == "[128,128] x [128,256] of f8e5m2" + from_registers + promoted);
  CHECK(remark(plan_with(plain<f8e4m3, f32>({64, 64, 512}).graph())) ==
        "[64,512] x [512,64] of f8e4m3" + from_registers + promoted);
  CHECK(remark(plan_with(plain<i8, i32>({64, 64, 512}).graph())) == "[64,512] x [512,64] of i8");
  CHECK(notes(plan_with(gated<f8e4m3>({64, 128, 128}).graph()))[0].find(
            "64x128x128 f8e4m3 by wgmma, 2 matmuls, 2 consumer groups of 1 warp group") != std::string::npos);
}

TEST_CASE("integers of 8 bits are summed by wgmma itself", "[plan]") {
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 128}, {128, 128, 128}, {128, 256, 128}, {256, 128, 128}}) {
    const Plan plan = plan_with(plain<i8, i32>(tiles).graph());
    INFO(tree_text(plan));
    REQUIRE(has_roles(plan));
    CHECK(count<PromoteSums>(plan) == 0);
    CHECK(count<Wgmma>(plan) == 1);
    Plan changed = plan;
    CHECK((the<Wgmma>(changed).k == 128 && the<Wgmma>(changed).overwrites_first));
    CHECK(notes(plan)[0].find("promoted") == std::string::npos);
    CHECK(count<TmaStore>(plan) == tiles.n / 32);
  }
}

TEST_CASE("two fp8 matmuls of a loop share the sets of registers", "[plan]") {
  const Plan plan = plan_with(gated<f8e4m3>({64, 128, 128}).graph());
  INFO(tree_text(plan));
  REQUIRE(has_roles(plan));
  CHECK(count<Wgmma>(plan) == 4);
  CHECK(count<PromoteSums>(plan) == 5);
  CHECK(count<DeclareAccumulator>(plan) == 3);
  CHECK(registers_of(plan, true) == 64);
  CHECK(registers_of(plan, false) == 16);  // both read one left operand
  // With parts of all columns, a thread has no registers for both.
  CHECK(has_roles(plan_with(gated<f8e4m3>({64, 128, 256}).graph())));
  // Both may have the same operands.
  const auto twice = kernel("twice", [](In<f8e4m3, 2> x, In<f8e4m3, 2> w, In<f32, 2> r, Out<f32, 2> y, Out<f32, 2> z) {
    Var sum = zeros<f32>({64, 64}), more = load(r, {0, 0}, {64, 64});
    for (Index k : range(cdiv(x.extent(1), 128))) {
      const Tile a = load(x, {0, k}, {64, 128}), b = transpose(load(w, {0, k}, {64, 128}));
      sum = mma(a, b, sum);
      more = mma(a, b, more);
    }
    store(y, {0, 0}, sum);
    store(z, {0, 0}, more);
  });
  const Plan of_twice = plan_with(twice.graph());
  CHECK(has_roles(of_twice));
  CHECK(violations(of_twice).empty());
}

TEST_CASE("fp8 may be split along k, integers may not", "[plan]") {
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 128}, {128, 128, 128}}) {
    const Graph graph = plain<f8e4m3, f32>(tiles).graph();
    const Plan clusters = plan_with(graph, split(SplitK::cluster)), all = plan_with(graph, split(SplitK::stream_k));
    CHECK(clusters.phases[0].schedule.split_k == SplitK::cluster);
    CHECK(all.shared_by_grid());
    CHECK(notes(clusters)[0].find(promoted + ", split-K in clusters") != std::string::npos);
    CHECK(notes(all)[0].find(promoted + ", stream-K") != std::string::npos);
    for (const Plan& plan : {clusters, all}) CHECK(count<PromoteSums>(plan) == count<Wgmma>(plan) + 1);
  }
  CHECK(plan_with(plain<f8e4m3, f32>({128, 256, 128}).graph(), split(SplitK::stream_k)).shared_by_grid());
  CHECK(plan_with(plain<f8e4m3, f32>({128, 256, 128}).graph(), [](Variant& v) { v.multicast = true; })
            .phases[0]
            .schedule.multicast == 2);
  for (const SplitK how : {SplitK::cluster, SplitK::stream_k}) {
    const Plan plan = plan_with(plain<i8, i32>({64, 64, 128}).graph(), split(how));
    CHECK(why_not(plan) == "");
    CHECK(plan.phases[0].schedule.split_k == SplitK::none);
    CHECK(std::ranges::any_of(plan.remarks, [](const Remark& remark) {
      return remark.message.find("the accumulators are not f32") != std::string::npos;
    }));
  }
  const auto k_iterations = [](const Graph& graph) {
    const Argument x{.extent = {100, 1300}, .stride = {1300, 1}};
    return SplitKLoop(run_passes(graph)).of(std::vector<Argument>(3, x));
  };
  CHECK(k_iterations(plain<f8e4m3, f32>({64, 64, 128}).graph()) == 11);
  CHECK(k_iterations(plain<i8, i32>({64, 64, 128}).graph()) == 0);
}

TEST_CASE("fp8 that wgmma does not take is multiplied as f16", "[plan]") {
  const auto check = [](const Plan& plan) {
    INFO(tree_text(plan));
    CHECK_FALSE(has_roles(plan));
    CHECK(count<Wgmma>(plan) == 0);
    REQUIRE(count<Mma>(plan) == 1);
    Plan changed = plan;
    CHECK(the<Mma>(changed).matmul.kind == MatmulKind::mma_sync);
    CHECK(the<Mma>(changed).matmul.type == ElementType::f16);
  };
  const Graph graph = plain<f8e4m3, f32>({64, 64, 128}).graph();
  for (const char* arch : {"sm_80", "sm_89", "sm_90", "sm_100", "sm_120"})
    check(plan_with(graph, {}, Arch::parse(arch)));
  const Graph passed = run_passes(graph);
  check(make_plan(passed, dense_variant(passed), Arch::sm_90a, {.verify = true, .warp_specialize = false}));
  CHECK(has_roles(make_plan(passed, dense_variant(passed), Arch::sm_90a, {.debug = true, .verify = true})));
  check(plan_with(graph, unaligned(0)));
  check(plan_with(plain<f8e5m2, bf16>({128, 128, 64}).graph()));
}

TEST_CASE("the search for a schedule names the rejected ones of fp8, too", "[plan]") {
  // The accumulators and the sums have 192 + 96 registers.
  const Plan plan = plan_with(gated<f8e4m3>({64, 192, 128}).graph());
  INFO(fmt::format("{}", fmt::join(plan.search, "\n")));
  REQUIRE(plan.search.size() >= 2);
  CHECK(plan.search.front().starts_with("rejected gemm, 1 of 1: 64x192x128 f8e4m3 by wgmma, 2 matmuls"));
  CHECK(plan.search.back().starts_with("schedule cta_matmul"));
  CHECK(why_not(plan).find("registers") != std::string::npos);
}

}  // namespace test_warp_specialized_8_bits_plan
