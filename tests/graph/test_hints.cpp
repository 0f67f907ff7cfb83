// Hints: unrolled loops, warps, stages, occupancy. They change texts, and no results.
#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <vector>

#include "codegen/generate.hpp"
#include "support/catch.hpp"
#include "support/stderr.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

namespace test_hints {

using namespace tessera::internal;

namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

/// Sums of columns, by a loop over rows.
auto column_sums(int unroll, const std::vector<Hints>& wanted = {}) {
  return kernel("column_sums", [=](In<f32, 2> x, Out<f32, 1> y) {
    for (const Hints& one : wanted) hints(one);
    Index block = blocks(cdiv(x.extent(1), 64));
    Var sums = zeros<f32>({64});
    const auto add = [&](Index i) { sums += reshape(load(x, {i, block}, {1, 64}), {64}); };
    if (unroll == 0)
      for (Index i : range(x.extent(0))) add(i);
    else
      for (Index i : range(0, x.extent(0)).unroll(unroll)) add(i);
    store(y, {block}, sums);
  });
}

auto product(const std::vector<Hints>& wanted, int unroll = 0) {
  return kernel("product", [=](In<f16, 2> a, In<f16, 2> b, Out<f32, 2> c) {
    for (const Hints& one : wanted) hints(one);
    auto [m, n] = blocks(cdiv(c.extent(0), 64), cdiv(c.extent(1), 64));
    Var sums = zeros<f32>({64, 64});
    const auto add = [&](Index k) { sums = mma(load(a, {m, k}, {64, 32}), load(b, {k, n}, {32, 64}), sums); };
    if (unroll == 0)
      for (Index k : range(cdiv(a.extent(1), 32))) add(k);
    else
      for (Index k : range(cdiv(a.extent(1), 32)).unroll(unroll)) add(k);
    store(c, {m, n}, sums);
  });
}

std::vector<float> sums_of(int unroll, const std::vector<Hints>& wanted) {
  const auto x = tensor<f32, 2>({7, 100}, numbered<f32>(700));
  Tensor<f32, 1> y(test_device(), {100});
  launch(test_device().stream(), column_sums(unroll, wanted), x, y);
  return y.to_vector();
}

std::vector<float> product_of(int unroll, const std::vector<Hints>& wanted) {
  std::vector<f16> a, b;
  for (int i = 0; i < 70 * 100; ++i) a.push_back(stored<f16>(i % 7 - 3)), b.push_back(stored<f16>(i % 5 - 2));
  const auto ta = tensor<f16, 2>({70, 100}, a), tb = tensor<f16, 2>({100, 70}, b);
  Tensor<f32, 2> c(test_device(), {70, 70});
  launch(test_device().stream(), product(wanted, unroll), ta, tb, c);
  return c.to_vector();
}

}  // namespace

TEST_CASE("hints change no result", "[cpu]") {
  const std::vector<float> sums = sums_of(0, {}), products = product_of(0, {});
  for (const int unroll : {1, 4}) {
    CHECK(sums_of(unroll, {}) == sums);
    CHECK(product_of(unroll, {}) == products);
  }
  for (const Hints& wanted :
       {Hints{.warps = 1}, Hints{.warps = 8, .stages = 3, .occupancy = 2}, Hints{.warps = 32, .stages = 1},
        Hints{.warps = 16, .stages = 7, .cluster = 16, .occupancy = 32, .arch = "sm_80"}, Hints{.deterministic = true},
        Hints{.launch_dependents = false}}) {
    INFO(to_string(wanted));
    CHECK(sums_of(2, {wanted}) == sums);
    CHECK(product_of(0, {wanted}) == products);
  }
}

TEST_CASE("hints that no kernel can have are an error", "[plan]") {
  const auto said = [](const Hints& wanted) { return error_of([&] { column_sums(0, {wanted}); }); };
  for (const int warps : {64, 3, -1})
    CHECK(says(said({.warps = warps}), {"kernel 'column_sums', ", "test_hints.cpp:",
                                        fmt::format(".warps = {}, and a CTA has 1, 2, 4, 8, 16 or 32", warps)}));
  CHECK(says(said({.stages = -2}), {".stages = -2, and a loop has 1 or more"}));
  CHECK(says(said({.cluster = 99}), {".cluster = 99, and a cluster has 1 to 16 CTAs"}));
  CHECK(says(said({.occupancy = 1000000}), {".occupancy = 1000000, and a multiprocessor runs 1 to 32 CTAs"}));
  for (const char* arch : {"SM_90", "cuda", "sm_90a "})
    CHECK(says(said({.arch = arch}), {fmt::format(".arch = \"{}\" is not an architecture", arch)}));
  CHECK(said({.warps = 32, .stages = 4, .cluster = 8, .occupancy = 32, .arch = "sm_90"}) == "(no error)");
}

TEST_CASE("a loop is unrolled as its hint says", "[plan]") {
  const Graph graph = column_sums(4).graph();
  CHECK(has(to_string(graph), "{unroll 4}"));
  CHECK_FALSE(has(to_string(column_sums(0).graph()), "unroll"));
  CHECK(has(cuda_source(column_sums(4), Arch::sm_80), "#pragma unroll 4\n  for (int "));
  CHECK(has(cuda_source(column_sums(1), Arch::sm_80), "#pragma unroll 1\n  for (int "));
  CHECK_FALSE(has(cuda_source(column_sums(0), Arch::sm_80), "#pragma unroll 4"));
  CHECK(has(cuda_source(product({}, 3), Arch::sm_80), "#pragma unroll 3\n"));
  CHECK(has(generate(graph, dense_variant(graph), Arch::sm_80, {}).plan, "unrolled by 4"));
  const std::string error = error_of([] { column_sums(-1); });
  CHECK(says(error,
             {"kernel 'column_sums', ", "test_hints.cpp:", "unroll(-1): the factor must be 1 or more"}));
}

TEST_CASE("hints are part of the graph, and apply where they are given", "[plan]") {
  const auto k = column_sums(0, {{.warps = 4}, {.occupancy = 3, .arch = "sm_90"}, {.warps = 8, .arch = "sm_80"}});
  const std::string text = to_string(k.graph());
  CHECK(has(text, "  hints {warps 4}\n  hints {occupancy 3, arch sm_90}\n  hints {warps 8, arch sm_80}\n"));
  CHECK(has(to_string(k.executable().graph()), "hints {warps 4}"));  // also after the passes
  CHECK(hints_for(k.graph().hints, "sm_90a") == Hints{.warps = 4, .occupancy = 3});
  CHECK(hints_for(k.graph().hints, "sm_90") == Hints{.warps = 4, .occupancy = 3});
  CHECK(hints_for(k.graph().hints, "sm_80") == Hints{.warps = 8});
  CHECK(hints_for(k.graph().hints, "sm_120") == Hints{.warps = 4});
  CHECK(hints_for({{.warps = 2, .arch = "sm_12"}}, "sm_120") == Hints{});
  CHECK(hints_for({{.warps = 2}, {.deterministic = true, .arch = "sm_90"}, {.stages = 2}}, "sm_90a") ==
        Hints{.warps = 2, .stages = 2, .deterministic = true});
  CHECK_FALSE(hints_for({{.deterministic = true, .arch = "sm_90"}}, "sm_80").deterministic);
  CHECK_FALSE(hints_for({{.launch_dependents = false}, {.warps = 2}}, "sm_90a").launch_dependents);
  CHECK(to_string(Hints{.warps = 4, .launch_dependents = false}) == "warps 4, launch_dependents false");
  CHECK(to_string(Hints{.warps = 4, .deterministic = true, .arch = "sm_80"}) == "warps 4, deterministic, arch sm_80");
  CHECK(to_string(Hints{.deterministic = true}) == "deterministic");
  CHECK(has(plan_text(k, Arch::sm_90a), "for sm_90a: 128 threads"));
  CHECK(has(plan_text(k, Arch::sm_80), "for sm_80: 256 threads"));
  CHECK(has(cuda_source(k, Arch::sm_90a), "__launch_bounds__(128, 3)"));
}

TEST_CASE("a plan follows its hints, or reports those that it does not follow", "[plan]") {
  const auto plan = [](const auto& k, Arch arch = Arch::sm_80) { return plan_text(k, arch); };
  const std::string left = "note: hint ignored: ";
  CHECK(has(plan(product({{.stages = 3}})), ", 3 stages of "));
  CHECK(has(plan(product({{.stages = 2}})), ", 2 stages of "));
  CHECK_FALSE(has(plan(product({{.stages = 1}})), "stages"));
  CHECK_FALSE(has(plan(product({{.warps = 8, .stages = 3}})), left));
  CHECK(has(plan(product({{.warps = 8}})), "256 threads"));
  CHECK(has(plan(product({{.stages = 16}})), left + "16 stages"));
  CHECK(has(plan(column_sums(0, {{.stages = 2}})), left + "2 stages; no loop prefetches"));
  // 32 CTAs of one warp each are the maximum of a multiprocessor; on sm_86 it is 16.
  const std::vector<Hints> most{{.warps = 1, .occupancy = 32}};
  CHECK(has(cuda_source(column_sums(0, most), Arch::sm_80), "__launch_bounds__(32, 32)"));
  CHECK(has(plan(column_sums(0, most), Arch::parse("sm_86")), left + "32 CTAs per multiprocessor; "));
  CHECK(has(plan(column_sums(0, {{.cluster = 2}})), left + "a cluster of 2; this plan has no split-K in clusters"));
  CHECK(has(plan(product({{.warps = 1}})), left + "1 warps; its tiles need 4"));
  const std::string trigger = "griddep_launch_dependents();\n  ";  // in the kernel, not in the prelude
  CHECK(has(cuda_source(column_sums(0), Arch::sm_90a), trigger));
  CHECK_FALSE(has(cuda_source(column_sums(0, {{.launch_dependents = false}}), Arch::sm_90a), trigger));
  const auto roles = product({{.warps = 2, .occupancy = 2}});
  const std::string by_roles = plan(roles, Arch::sm_90a);
  CHECK(has(by_roles, left + "2 warps"));
}

}  // namespace test_hints
