// The patterns of schedules.def, and the search among their candidates.
#include <fmt/format.h>

#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "common/kernels.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/plan_kernels.hpp"
#include "support/variants.hpp"

namespace test_schedule_search {

using namespace tessera::internal;
using namespace tessera::internal::lowering;

TEST_CASE("a kernel has schedules for all warps of one pattern, and for roles of at most one", "[plan]") {
  const auto check = [](const Graph& graph, const Variant& variant, Arch arch) {
    INFO(fmt::format("{} for {}", graph.name, arch.name()));
    const GraphAnalysis analysis(graph, variant, Target::of(arch));
    int for_all = 0, for_roles = 0, refusals = 0;
    for (const SchedulePattern& pattern : schedule_patterns()) {
      const ScheduleMatch match = pattern.match(analysis, false);
      refusals += match.candidates.empty() && !match.why_not.empty();
      for (const auto& schedule : match.candidates) {
        CHECK(schedule->is_warp_specialized() == match.candidates[0]->is_warp_specialized());
        CHECK_FALSE(schedule->text(analysis).empty());
      }
      if (!match.candidates.empty()) ++(match.candidates[0]->is_warp_specialized() ? for_roles : for_all);
    }
    // A kernel that one pattern matches is not remarked with the reason of another.
    const ScheduleSearch search(analysis, false);
    CHECK((!search.current().is_warp_specialized() || !search.refusal()));
    CHECK(for_all == 1);
    CHECK(for_roles <= 1);
    CHECK((arch == Arch::sm_90a || for_roles + refusals == 0));
  };
  for (const std::string& kernel : plan_kernels())
    for (const auto& variant : {dense_variant, ragged_variant, strided_variant})
      for (const Arch arch : {Arch::sm_80, Arch::sm_90a}) check(plan_graph(kernel), variant(plan_graph(kernel)), arch);
  for (const NamedKernel& kernel : named_kernels()) {
    const Graph graph = kernel.graph();
    check(graph, kernel.variant(graph), Arch::sm_90a);
  }
}

TEST_CASE("a dump lists the schedules that were tried", "[plan]") {
  const Graph graph = kernels::linear_gelu<bf16, bf16>({128, 192, 64}).executable().graph();
  const codegen::Plan plan = codegen::make_plan(graph, dense_variant(graph), Arch::sm_90a, {});
  // Two warp groups of 96 accumulators a thread follow one of 192, with and without the bias in registers.
  REQUIRE(plan.search.size() == 3);
  const std::string &rejected = plan.search[1], &taken = plan.search[2];
  CHECK(plan.search[0].starts_with("rejected gemm, 1 of "));
  CHECK(rejected.starts_with("rejected gemm, 2 of "));
  CHECK(rejected.find(": 128x192x64 bf16 by wgmma, ") != std::string::npos);
  CHECK(rejected.ends_with(" registers, and a thread has 220"));
  CHECK(taken.starts_with("schedule gemm, 3 of "));
  CHECK(dump_text(plan).find('\n' + rejected + '\n' + taken + '\n') != std::string::npos);
  // The text of a kernel, and so its key in the cache, is about what was chosen alone.
  CHECK(to_string(plan).find("rejected gemm") == std::string::npos);
}

}  // namespace test_schedule_search
