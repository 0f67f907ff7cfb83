// Matmuls of few rows: weights are loaded, or prefetched into L2, before the grid dependency wait, and loads come
// early.
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

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
auto scaled_rows(int rows, int width, int columns = 16) {
  return kernel("scaled", [=](In<f32, 2> x, In<bf16, 2> w, In<f32, 1> bias, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(x.extent(0), rows), cdiv(w.extent(1), columns));
    Tile row = load(x, {m, 0}, {rows, width});
    Tile share = row * (1.0f / sum(row, 1));
    Tile product = mma(cast<bf16>(share), load(w, {0, n}, {width, columns}), zeros<f32>({rows, columns}));
    store(y, {m, n}, product + load(bias, {n}, {columns}));
  });
}
auto scaled(int rows) { return scaled_rows(rows, 256); }

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
  for (const Plan& plan : {plan_of(in_loop(1, 16)), plan_of(in_loop(16, 64))}) {
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
    const auto kernel = in_loop(1, 16);
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
  CHECK((prefetches_of(plan_of(own)) == 0 && plan_of(own).prefetched_before_wait() == std::vector<int>{}));
  const auto found = kernel("found", [](In<bf16, 2> x, In<bf16, 2> w, In<i32, 1> which, Out<f32, 2> y) {
    Index n = blocks(cdiv(w.extent(1), 16));
    Tile at = item(load(which, {n}, {1}));
    store(y, {0, n}, mma(load(x, {0, 0}, {1, 256}), load(w, {0, at}, {256, 16}), zeros<f32>({1, 16})));
  });
  CHECK((prefetches_of(plan_of(found)) == 0 && plan_of(found).prefetched_before_wait() == std::vector{2}));
}

TEST_CASE("a gemv's loads come before what it computes of the first of them", "[plan]") {
  const auto lines = lines_of(plan_of(scaled(1), Arch::sm_90a, 0));
  const int sum = line_with(lines, "= sum along 1");
  for (const char* load : {"= in0[", "= in1[", "= in2["}) {
    INFO(load);
    CHECK((line_with(lines, load) >= 0 && line_with(lines, load) < sum));
  }
  // Other warps run meanwhile.
  const auto more = lines_of(plan_of(scaled(32)));
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
  CHECK(line_with(lines, "= in0[") < line_with(lines, "= in1["));  // both need `at`, which the wait is for
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
          {"without a wait", [](Plan& p) { place_of<GridDependencyWait>(p).drop(); },
           "has no grid dependency wait after it"},
          {"behind an early trigger",
           [](Plan& p) {
    Body& body = p.phases[0].roles[0].body;
    std::swap(body[1], body[2]);
           },
           "trigger is not behind the role's wait"},
                     {"along no axis", [](Plan& p) { the<PrefetchL2>(p).selected = 2; }, "selects axis 2"},
                     };
  check_reported(plan_of(in_loop(1, 16)), faults);
}

TEST_CASE("a gemv loads weights before the grid dependency wait, unless an earlier launch may write them", "[plan]") {
  const auto before = [](const Plan& plan) {
    std::vector<std::string> lines = lines_of(plan);
    INFO(tree_text(plan));
    const int first = line_with(lines, "unless it may prefetch: grid dependency wait");
    const auto last = std::ranges::find(lines, "grid dependency wait");
    CHECK(violations(plan).empty());
    CHECK((first >= 0 && last - lines.begin() > first));
    return std::vector(lines.begin() + first + 1, last);
  };
  const Plan plan = plan_of(scaled(1), Arch::sm_90a, 0);
  const auto loads = before(plan);
  CHECK((loads.size() == 2 && line_with(loads, "= in1[") >= 0 && line_with(loads, "= in2[") >= 0));
  CHECK(plan.prefetched_before_wait() == std::vector{1, 2});
  CHECK(prefetches_of(plan) == 1);  // for a launch that must wait
  CHECK(plan.parameters.back().kind == KernelParameter::Kind::may_prefetch);
  const std::string text = generate(scaled(1).executable().graph(), plan.variant, Arch::sm_90a).text;
  CHECK(text.find("if (!may_prefetch) griddep_wait();") <
        text.find("  griddep_wait();\n  griddep_launch_dependents();"));
  // Activations, caches, and what is found by data that was not loaded before.
  const auto cached = kernel("cached", [](In<bf16, 2> x, In<bf16, 3> keys, In<i32, 1> lengths, Out<f32, 2> y) {
    Index b = blocks(x.extent(0));
    Tile row = load(x, {b, 0}, {1, 64});
    Tile k = load(keys.slice(1, 0, item(load(lengths, {b}, {1}))), {b, 0, 0}, {1, 64, 64});
    store(y, {b, 0}, mma(row, transpose(reshape(k, {64, 64})), zeros<f32>({1, 64})));
  });
  const auto length = before(plan_of(cached));
  CHECK((length.size() == 1 && line_with(length, "= in2[") == 0));
  // Other kernels wait first.
  for (const Plan& other : {plan_of(scaled(32)), plan_of(in_loop(1, 16)), plan_of(scaled(1), Arch::sm_80)})
    CHECK(other.prefetched_before_wait().empty());
}

TEST_CASE("the verifier reports wrong loads before the grid dependency wait", "[plan]") {
  const auto move = [](Plan& p, std::size_t from, std::size_t to) {
    Body& body = p.phases[0].roles[0].body;
    Step step = body[from];
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(from));
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(to), std::move(step));
  };
  // unless it may prefetch: a prefetch into L2 and the wait; two loads, wait, trigger, the load of x
  const PlantedFault faults[] =
      {
          {"one ahead of the guard", [&](Plan& p) { move(p, 2, 1); }, "ran other steps before"},
          {"none behind the guard", [&](Plan& p) { move(p, 1, 3); }, "or different ones"},
          {"a computation that reads a tensor",
           [](Plan& p) {
    Step& step = p.phases[0].roles[0].body[3];
    const Load load = *step.action.as<Load>();
    Compute number;
    number.out = load.out;
    number.sweep = load.sweep;
    number.sweep.reads = {load.access};
    number.sweep.expression.terms = {{.op = Op::broadcast,
                                      .type = ElementType::f32,
                                      .operand = ElementType::f32,
                                      .in = {{.kind = Operand::Kind::fetched}}}};
    step.action = std::move(number);
           },
           "ran other steps before"},
          {"two guards",
           [](Plan& p) {
    p.phases[0].roles[0].body.insert(p.phases[0].roles[0].body.begin() + 1,
                                     {GridDependencyWait{.unless_may_prefetch = true}});
           },
           "has a second wait before its prefetched loads"},
                     {"a guard behind the wait",
                      [](Plan& p) {
    p.phases[0].roles[0].body.insert(p.phases[0].roles[0].body.begin() + 5,
                                     {GridDependencyWait{.unless_may_prefetch = true}});
                      },
                      "has a second wait before its prefetched loads"},
      {"only guarded", [](Plan& p) { p.phases[0].roles[0].body.erase(p.phases[0].roles[0].body.begin() + 4); },
       "only a conditional grid dependency wait"},
      {"an unlisted tensor", [&](Plan& p) { p.parameters.pop_back(); }, "or different ones"},
      };
  check_reported(plan_of(scaled(1), Arch::sm_90a, 0), faults);
}

namespace {

/// Rows of x, scaled by g and by their sums, times w; one tile of columns, or several in a loop.
auto scaled_twice(int width, int rounds) {
  return kernel("scaled_twice", [=](In<f32, 2> x, In<bf16, 2> w, In<f32, 1> g, Out<f32, 2> y) {
    auto [b, n] = blocks(x.extent(0), cdiv(w.extent(1), 16 * rounds));
    Tile row = load(x, {b, 0}, {1, width});
    Tile left = cast<bf16>(row * (1.0f / sum(row, 1)) * load(g, {0}, {width}));
    const auto tile = [&](const Index& at) {
      store(y, {b, at}, mma(left, load(w, {0, at}, {width, 16}), zeros<f32>({1, 16})));
    };
    if (rounds == 1) return tile(n);
    for (Index i : range(rounds)) tile(n * rounds + i);
  });
}

/// How many warps load each element of a parameter.
int copies_of(const Plan& plan, int parameter) {
  int copies = 0;
  for (const StepPlace& place : steps_of(const_cast<Plan&>(plan)))
    if (const Load* const load = place.step().action.as<Load>(); load && load->access.parameter == parameter)
      copies = 1 << std::popcount(static_cast<unsigned>(load->sweep.layout.warp_copies(plan.threads() / 32)));
  return copies;
}

}  // namespace

TEST_CASE("the left operand of a gemv is computed once, if warps would read much of it again", "[plan]") {
  const Plan once = plan_of(scaled_twice(768, 1), Arch::sm_90a, 0);
  CHECK((copies_of(once, 0) == 1 && copies_of(once, 2) == 1));
  const Plan small = plan_of(scaled_twice(48, 1), Arch::sm_90a, 0);
  CHECK((copies_of(small, 0) > 1 && copies_of(small, 2) > 1));
  // One tile is read by every warp: an exchange would not pay.
  const auto plain = kernel("plain", [](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    Index n = blocks(cdiv(w.extent(1), 16));
    store(y, {0, n}, mma(load(x, {0, 0}, {1, 2048}), load(w, {0, n}, {2048, 16}), zeros<f32>({1, 16})));
  });
  CHECK(copies_of(plan_of(plain, Arch::sm_90a, 0), 0) == 8);
}

TEST_CASE("a left operand that is computed once passes reshapes, and is distributed before a loop", "[plan]") {
  const auto heads = kernel("heads", [](In<f32, 3> x, In<bf16, 2> w, In<f32, 2> share, Out<f32, 2> y) {
    auto [b, n] = blocks(x.extent(0), cdiv(w.extent(1), 16));
    Tile parts = reshape(load(x, {b, 0, 0}, {1, 12, 64}), {12, 64}) * load(share, {0, 0}, {12, 1});
    store(y, {b, n}, mma(cast<bf16>(reshape(parts, {1, 768})), load(w, {0, n}, {768, 16}), zeros<f32>({1, 16})));
  });
  const auto exchanges = [](const Plan& plan) { return plan.scratch.size(); };
  const Plan plan = plan_of(heads, Arch::sm_90a, 0);
  INFO(tree_text(plan));
  CHECK((copies_of(plan, 0) == 1 && exchanges(plan) == 1));
  const Plan loop = plan_of(scaled_twice(768, 4), Arch::sm_90a, 0);
  INFO(tree_text(loop));
  const auto lines = lines_of(loop);
  const int moved = line_with(lines, "_moved0 = scratch");
  CHECK((moved >= 0 && moved < line_with(lines, "for ")));
}

TEST_CASE("few computed rows times weights: each warp has a slice of k, and weights come before the wait", "[plan]") {
  for (const int contiguous : {0, 1}) {
    const Plan plan = plan_of(scaled(16), Arch::sm_90a, contiguous);
    INFO(tree_text(plan));
    const Matmul& matmul = the<Mma>(const_cast<Plan&>(plan)).matmul;
    CHECK((matmul.slices() == 8 && !matmul.partial && matmul.a.value && matmul.is_latency_bound()));
    CHECK(copies_of(plan, 0) == 1);
    CHECK(plan.prefetched_before_wait() == std::vector{1, 2});
    const auto lines = lines_of(plan);
    const int fetch = line_with(lines, "fetch "), wait = line_with(lines, "cp.async.wait_group 0");
    CHECK((fetch >= 0 && fetch < line_with(lines, "= sum along 1") && wait > line_with(lines, "= sum along 1")));
    CHECK(violations(plan).empty());
  }
  // Weights that take the place of what the norm had in shared memory come behind it, and so behind the wait.
  const Plan large = plan_of(scaled_rows(1, 1600, 40), Arch::sm_90a, 0);
  INFO(tree_text(large));
  CHECK((violations(large).empty() && large.prefetched_before_wait() == std::vector{2}));
  // Rows that do not fit into registers go to memory, whose CTAs run several grid tiles: they wait first.
  const Plan wide = plan_of(scaled_rows(16, 2048));
  CHECK((wide.persistent() && wide.prefetched_before_wait().empty() && violations(wide).empty()));
  // Not many rows, nor rows that another matmul computes, nor in a loop.
  CHECK_FALSE(the<Mma>(const_cast<Plan&>(static_cast<const Plan&>(plan_of(scaled(32))))).matmul.is_latency_bound());
  const auto chain = kernel("chain", [](In<bf16, 2> x, In<bf16, 2> w, In<bf16, 2> v, Out<f32, 2> y) {
    Index n = blocks(cdiv(v.extent(1), 16));
    Tile first = mma(load(x, {0, 0}, {16, 64}), load(w, {0, 0}, {64, 64}), zeros<f32>({16, 64}));
    store(y, {0, n}, mma(cast<bf16>(first), load(v, {0, n}, {64, 16}), zeros<f32>({16, 16})));
  });
  for (const Plan& plan : {plan_of(chain), plan_of(in_loop(16, 64))}) {
    INFO(tree_text(plan));
    for (const StepPlace& place : steps_of(const_cast<Plan&>(plan)))
      if (const Mma* const mma = place.step().action.as<Mma>()) CHECK_FALSE(mma->matmul.is_latency_bound());
  }
}

TEST_CASE("few loaded rows times weights are loaded at once, and each warp has a slice of k", "[plan]") {
  const auto residual = [](int rows, int k) {
    return kernel("residual", [=](In<bf16, 2> x, In<bf16, 2> w, In<f32, 1> bias, InOut<f32, 2> y) {
      auto [m, n] = blocks(cdiv(x.extent(0), rows), cdiv(w.extent(1), 8));
      Tile product = mma(load(x, {m, 0}, {rows, k}), load(w, {0, n}, {k, 8}), zeros<f32>({rows, 8}));
      Tile before = load(y, {m, n}, {rows, 8});
      store(y, {m, n}, before + product + load(bias, {n}, {8}));
    });
  };
  for (const int k : {256, 768, 3072, 4096}) {
    const Plan plan = plan_of(residual(16, k), Arch::sm_90a, 0);
    INFO(tree_text(plan));
    const Matmul& matmul = the<Mma>(const_cast<Plan&>(plan)).matmul;
    CHECK((matmul.slices() == 8 && !matmul.partial && matmul.is_latency_bound()));
    CHECK(plan.prefetched_before_wait() == std::vector{1, 2});
    CHECK(violations(plan).empty());
  }
  // Short rows are not worth the exchange of sums; more rows, or rows that shared memory does not hold, take a loop.
  for (const auto& [rows, k] : {std::pair{16, 128}, {32, 768}, {16, 8192}}) {
    const Plan plan = plan_of(residual(rows, k), Arch::sm_90a, 0);
    INFO(tree_text(plan));
    CHECK_FALSE(the<Mma>(const_cast<Plan&>(plan)).matmul.is_latency_bound());
  }
}

TEST_CASE("loads of an iteration come first, in a loop without matmuls", "[plan]") {
  const auto three = [](int columns) {
    return kernel("three", [=](In<f32, 2> x, In<f32, 2> w, In<f32, 2> v, Out<f32, 2> y) {
      hints({.warps = 1});
      Index m = blocks(x.extent(0));
      Var sums = zeros<f32>({1, columns});
      for (Index k : range(cdiv(x.extent(1), columns))) {
        Tile a = load(x, {m, k}, {1, columns});
        Tile b = a / sum(a, 1) * load(w, {0, k}, {1, columns});
        sums = sums + b / sum(b, 1) * load(v, {0, k}, {1, columns});
      }
      store(y, {m, 0}, sums);
    });
  };
  const auto order = [&](int columns) {
    const auto lines = lines_of(plan_of(three(columns)));
    INFO(fmt::format("{}", fmt::join(lines, "\n")));
    const int second = line_with(lines, "= in1["), third = line_with(lines, "= in2[");
    CHECK((second >= 0 && third >= 0));
    const int sum = line_with(lines, "= sum along 1");
    return (second < sum) + (third < sum);
  };
  CHECK(order(512) == 2);
  CHECK(order(1024) == 1);  // as far as registers suffice
}

TEST_CASE("factors of rows are loaded before the sums that come first", "[plan]") {
  const auto scaled = kernel("scaled", [](In<f32, 2> x, In<f32, 1> a, In<f32, 1> b, In<f32, 1> c, Out<f32, 2> y) {
    hints({.warps = 2});
    Index m = blocks(x.extent(0));
    Tile row = load(x, {m, 0}, {1, 768});
    Tile share = row / sum(row, 1);
    store(y, {m, 0}, (share * load(a, {0}, {768}) + load(b, {0}, {768})) * load(c, {0}, {768}));
  });
  const auto lines = lines_of(plan_of(scaled));
  INFO(fmt::format("{}", fmt::join(lines, "\n")));
  const int sum = line_with(lines, "= sum");
  CHECK((line_with(lines, "= in1[") < sum && line_with(lines, "= in2[") < sum));
  CHECK(line_with(lines, "= in3[") > sum);  // registers suffice for two
}

TEST_CASE("stores of copies need no barrier among each other, and reads of copies do", "[plan]") {
  const auto logits = [](bool reads) {
    return kernel("logits", [=](In<f32, 2> x, In<bf16, 2> w, InOut<f32, 2> y) {
      Index n = blocks(4);
      Tile row = cast<bf16>(load(x, {0, 0}, {1, 256}));
      for (Index i : range(8)) {
        Tile product = mma(row, load(w, {0, n * 8 + i}, {256, 16}), zeros<f32>({1, 16}));
        if (reads) {
          Tile before = load(y, {0, n * 8 + i}, {1, 16});
          store(y, {0, n * 8 + i}, before + product);
        } else {
          store(y, {0, n * 8 + i}, product);
        }
      }
    });
  };
  const auto barriers_of = [&](bool reads) {
    Plan plan = plan_of(logits(reads), Arch::sm_90a, 0);
    INFO(tree_text(plan));
    CHECK(violations(plan).empty());
    int count = 0;
    for (const StepPlace& place : steps_of(plan))
      if (const Loop* const loop = place.step().action.as<Loop>())
        count +=
            static_cast<int>(std::ranges::count_if(loop->body, [](const Step& s) { return s.action.is<Barrier>(); }));
    return count;
  };
  CHECK(barriers_of(false) == 0);
  CHECK(barriers_of(true) > 0);
}

TEST_CASE("a copy that a barrier precedes is not visible before its own barrier", "[plan]") {
  const PlantedFault faults[] = {{"no barrier behind the copy's wait",
                                  [](Plan& p) {
    Body& body = p.phases[0].roles[0].body;
    const auto mma = std::ranges::find_if(body, [](const Step& step) { return step.action.is<Mma>(); });
    body.erase(mma - 1);
                                  },
                                  "a barrier is missing"}};
  check_reported(plan_of(scaled(16)), faults);
}

}  // namespace test_gemv_plans
