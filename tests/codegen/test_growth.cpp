// Kernels that are four times as large take about four times as long: to trace, to optimize, to prepare for the CPU and
// to generate. Kernels that would take too much are rejected in a sentence.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "codegen/generate.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "common/growing.hpp"
#include "cpu/program.hpp"
#include "graph/evaluate.hpp"
#include "support/catch.hpp"
#include "support/share.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

namespace test_growth {

using namespace tessera::internal;

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr int slowdown = 10;  // of sanitizers, about
#else
constexpr int slowdown = 1;
#endif

/// CPU time of this thread: other work of the machine does not count.
double seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// The time of each stage for a kernel of this size.
std::vector<std::pair<std::string, double>> times_of(const Growing& kernel, int size) {
  std::vector<std::pair<std::string, double>> times;
  double last = seconds();
  const auto lap = [&](const std::string& stage) {
    const double now = seconds();
    times.emplace_back(stage, now - last);
    last = now;
  };
  Graph graph = kernel.traced(size);
  lap("trace");
  graph = run_passes(std::move(graph));
  lap("passes");
  CHECK(!to_string(graph).empty());
  lap("text");
  generate(graph, dense_variant(graph), Arch::sm_90a);
  lap("generate");
  UniformProgram(graph, graph.grid);
  lap("launch");
  cpu::Program(std::move(graph));
  lap("CPU program");
  return times;
}

/// The stages that take far more than four times as long for a kernel that is four times as large.
std::string too_long(const Growing& kernel) {
  constexpr double too_short = 0.03;  // to measure anything
  const int size = kernel.size / (slowdown == 1 ? 2 : 8);
  const auto small = times_of(kernel, size / 4), large = times_of(kernel, size);
  std::string report;
  for (std::size_t i = 0; i < small.size(); ++i)
    if (large[i].second >= 10 * std::max(small[i].second, too_short))
      report += fmt::format("{}: {} s for {}, {} s for {}\n", small[i].first, small[i].second, size / 4,
                            large[i].second, size);
  return report;
}

const Growing& growing(std::string_view name) { return *std::ranges::find(growing_kernels(), name, &Growing::name); }

}  // namespace

TEST_CASE("a kernel four times as large takes about four times as long", "[passes][growth]") {
  const std::size_t share = std::max<std::size_t>(test_share(1) / 4, 1);
  int tried = 0;
  for (const Growing& kernel : growing_kernels()) {
    if (!in_share(kernel.name, share)) continue;
    ++tried;
    // Times vary on a machine that does other work: only a stage that is too slow three times is an error.
    std::string report = too_long(kernel);
    for (int again = 0; again < 2 && !report.empty(); ++again) report = too_long(kernel);
    INFO(kernel.name);
    CHECK(report == "");
  }
  CHECK(tried > 1);
}

TEST_CASE("a kernel that grows is warp-specialized", "[passes][growth]") {
  const Graph graph = run_passes(growing("arithmetic on a warp-specialized matmul").traced(8));
  const codegen::Plan plan = codegen::make_plan(graph, dense_variant(graph), Arch::sm_90a, {});
  CHECK(plan.phases[0].roles.size() == 2);
  CHECK(plan.tensor_maps.size() == 4);  // including those of both stores
}

TEST_CASE("a hundred thousand ops in a row become a program in seconds", "[passes][growth]") {
  for (const auto& [stage, time] : times_of(growing("a chain of ops with numbers"), 100000)) {
    INFO(stage);
    CHECK(time < 10 * slowdown);
  }
}

TEST_CASE("too deep nesting is rejected", "[graph][growth]") {
  const auto error = [](std::string_view name, int depth) { return error_of([&] { growing(name).traced(depth); }); };
  for (const auto name : {"loops in one another", "loops in one another that store"}) {
    CHECK(error(name, 100) == "(no error)");
    CHECK(says(error(name, 101), {"kernel 'growing', ", "growing.cpp:", "nested more than 100 deep"}));
  }
  CHECK(error("ifs in one another", 99) == "(no error)");
  CHECK(says(error("ifs in one another", 100), {"loops and if_ are nested more than 100 deep"}));
  const auto views = [&](int depth) {
    return error_of([&] {
      trace_kernel("sliced", [&](In<f32, 1> x, Out<f32, 1> y) {
        std::vector<In<f32, 1>> view{x};
        for (int i = 0; i < depth; ++i) view.push_back(view.back().slice(0, i, 100));
        store(y, {0}, load(view.back(), {0}, {4}));
      });
    });
  };
  CHECK(views(100) == "(no error)");
  CHECK(says(views(101), {"kernel 'sliced', ", "test_growth.cpp:", "views are nested more than 100 deep"}));
}

}  // namespace test_growth
