// Matmuls of few rows: weights are prefetched into L2 ahead of the grid dependency wait, and loads come early.
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/generate.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "support/catch.hpp"
#include "support/plan_steps.hpp"
#include "support/planted_faults.hpp"
#include "support/support.hpp"
#include "support/variants.hpp"
#include "tessera/tessera.hpp"

namespace test_gemv_plans {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

/// Rows of x divided by their sums, times w, plus a bias.
auto scaled(int rows) {
  return kernel("scaled", [=](In<f32, 2> x, In<bf16, 2> w, In<f32, 1> bias, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(x.extent(0), rows), cdiv(w.extent(1), 16));
    Tile row = load(x, {m, 0}, {rows, 256});
    Tile share = row * (1.0f / sum(row, 1));
    Tile product = mma(cast<bf16>(share), load(w, {0, n}, {256, 16}), zeros<f32>({rows, 16}));
    store(y, {m, n}, product + load(bias, {n}, {16}));
  });
}

/// The same in a loop.
auto in_loop(int rows, int columns) {
  return kernel("in_loop", [=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(x.extent(0), rows), cdiv(w.extent(1), columns));
    Var acc = zeros<f32>({rows, columns});
    for (Index k : range(cdiv(x.extent(1), 64)))
      acc = mma(load(x, {m, k}, {rows, 64}), load(w, {k, n}, {64, columns}), acc);
    store(y, {m, n}, acc);
  });
}

Plan plan_of(const auto& kernel, Arch arch = Arch::sm_90a, int contiguous = 1) {
  const Graph& graph = kernel.executable().graph();
  Variant variant = dense_variant(graph);
  variant.tensors[1].contiguous_axis = static_cast<std::int8_t>(contiguous);
  return make_plan(graph, variant, arch, {});
}

std::vector<std::string> lines_of(const Plan& plan) {
  std::vector<std::string> lines;
  for (const StepPlace& place : steps_of(const_cast<Plan&>(plan))) lines.push_back(step_text(plan, place.step()));
  return lines;
}

int line_with(const std::vector<std::string>& lines, std::string_view text) {
  const auto found = std::ranges::find_if(lines, [&](const auto& line) { return line.find(text) != line.npos; });
  return found == lines.end() ? -1 : static_cast<int>(found - lines.begin());
}

int prefetches_of(const Plan& plan) {
  int count = 0;
  for (const std::string& line : lines_of(plan)) count += line.find("prefetch into L2") != line.npos;
  return count;
}

}  // namespace

TEST_CASE("weights of a matmul of few rows are prefetched before the grid dependency wait", "[plan]") {
  for (const Plan& plan : {plan_of(scaled(1)), plan_of(in_loop(1, 16)), plan_of(in_loop(16, 64))}) {
    const auto lines = lines_of(plan);
    INFO(tree_text(plan));
    CHECK(plan.waits_for_previous());
    const int prefetch = line_with(lines, "prefetch into L2 in1["), wait = line_with(lines, "grid dependency wait");
    CHECK((prefetch >= 0 && prefetch < wait));
    CHECK(prefetches_of(plan) == 1);
    CHECK(violations(plan).empty());
  }
  // Two CTAs read the same weights.
  CHECK(prefetches_of(plan_of(in_loop(32, 64))) == 0);
  // No launch overlaps another.
  CHECK(prefetches_of(plan_of(scaled(1), Arch::sm_80)) == 0);
  // Not contiguous along either axis.
  CHECK(prefetches_of(plan_of(scaled(1), Arch::sm_90a, -1)) == 0);
}

TEST_CASE("a prefetch names a part of the tensor, whatever axis is contiguous", "[plan]") {
  const auto text_of = [](int contiguous) {
    const auto kernel = scaled(1);
    const Graph& graph = kernel.executable().graph();
    Variant variant = dense_variant(graph);
    variant.tensors[1].contiguous_axis = static_cast<std::int8_t>(contiguous);
    return generate(graph, variant, Arch::sm_90a).text;
  };
  const auto in_text = [&](int contiguous, std::string_view part) {
    return text_of(contiguous).find(part) != std::string::npos;
  };
  CHECK(in_text(0, "(in1, static_cast<i64>(block1) * 16, 16, in1_extent1, 0, 4096, in1_extent0, in1_stride1);"));
  CHECK(in_text(1, "(in1, 0, 4096, in1_extent0, static_cast<i64>(block1) * 16, 16, in1_extent1, in1_stride0);"));
}

TEST_CASE("what a kernel writes, or finds in what it reads, is not prefetched", "[plan]") {
  const auto own = kernel("own", [](In<bf16, 2> x, InOut<bf16, 2> w, Out<f32, 2> y) {
    Index n = blocks(cdiv(w.extent(1), 16));
    Tile weights = load(w, {0, n}, {256, 16});
    store(w, {0, n}, cast<bf16>(cast<f32>(weights) * 2.0f));
    store(y, {0, n}, mma(load(x, {0, 0}, {1, 256}), weights, zeros<f32>({1, 16})));
  });
  CHECK(prefetches_of(plan_of(own)) == 0);
  const auto found = kernel("found", [](In<bf16, 2> x, In<bf16, 2> w, In<i32, 1> which, Out<f32, 2> y) {
    Index n = blocks(cdiv(w.extent(1), 16));
    Tile at = item(load(which, {n}, {1}));
    store(y, {0, n}, mma(load(x, {0, 0}, {1, 256}), load(w, {0, at}, {256, 16}), zeros<f32>({1, 16})));
  });
  CHECK(prefetches_of(plan_of(found)) == 0);
}

TEST_CASE("a gemv's loads come before what it computes of the first of them", "[plan]") {
  const auto lines = lines_of(plan_of(scaled(1), Arch::sm_90a, 0));
  const int sum = line_with(lines, "= sum along 1");
  for (const char* load : {"= in0[", "= in1[", "= in2["}) {
    INFO(load);
    CHECK((line_with(lines, load) >= 0 && line_with(lines, load) < sum));
  }
  CHECK(line_with(lines, "= in0[") < line_with(lines, "= in1["));  // the sum waits for it
  // Other warps run meanwhile.
  const auto more = lines_of(plan_of(scaled(16)));
  CHECK(line_with(more, "= in2[") > line_with(more, "= sum along 1"));
}

TEST_CASE("loads that wait for the same number stay in order, and behind stores to what they read", "[plan]") {
  const auto found = kernel("found", [](In<f32, 2> x, In<bf16, 2> w, In<i32, 1> which, InOut<f32, 2> y) {
    Index n = blocks(cdiv(w.extent(1), 16));
    Tile at = item(load(which, {n}, {1}));
    Tile row = load(x, {at, 0}, {1, 256});
    Tile share = row * (1.0f / sum(row, 1));
    store(y, {0, n}, mma(cast<bf16>(share), load(w, {at, n}, {256, 16}), zeros<f32>({1, 16})));
    Tile before = load(y, {1, n}, {1, 16});
    store(y, {2, n}, before + load(x, {at, n}, {1, 16}));
  });
  const auto lines = lines_of(plan_of(found, Arch::sm_90a, 0));
  INFO(fmt::format("{}", fmt::join(lines, "\n")));
  CHECK(line_with(lines, "= in2[") < line_with(lines, "= in0["));
  CHECK(line_with(lines, "= in0[") < line_with(lines, "= in1["));  // both need `at`
  CHECK(line_with(lines, "= in1[") < line_with(lines, "= sum along 1"));
  CHECK(line_with(lines, "inout3[0 * 1") < line_with(lines, "= inout3["));
}

TEST_CASE("the verifier reports a late prefetch into L2", "[plan]") {
  const PlantedFault faults[] =
      {
          {"after the wait",
           [](Plan& p) {
    Body& body = p.phases[0].roles[0].body;
    std::swap(body[0], body[1]);
           },
           "prefetched into L2 after the grid dependency wait"},
          {"after a computation that reads a tensor",
           [](Plan& p) {
    Body& body = p.phases[0].roles[0].body;
    std::swap(body[1], body[2]);
    Compute number;
    number.out = the<Load>(p).out;
    number.sweep = the<Load>(p).sweep;
    number.sweep.reads = {the<Load>(p).access};
    number.sweep.expression.terms = {{.op = Op::broadcast,
                                      .type = ElementType::f32,
                                      .operand = ElementType::f32,
                                      .in = {{.kind = Operand::Kind::fetched}}}};
    body[1].action = std::move(number);
           },
           "ran other steps before"},
                     {"without a wait", [](Plan& p) { place_of<GridDependencyWait>(p).drop(); },
                      "has no grid dependency wait after it"},
                     {"along no axis", [](Plan& p) { the<PrefetchL2>(p).selected = 2; }, "selects axis 2"},
                     };
  check_reported(plan_of(scaled(1)), faults);
}

}  // namespace test_gemv_plans
