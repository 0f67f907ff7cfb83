// Several graphs in one plan: each is a phase of one kernel with a grid of its own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "codegen/emit/emit.hpp"
#include "codegen/lower/graph_lowering.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes/plan/barriers.hpp"
#include "codegen/passes/plan/copies.hpp"
#include "codegen/passes/plan/memory.hpp"
#include "codegen/passes/plan/parameters.hpp"
#include "codegen/passes/plan/plan_dce.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "codegen/prelude/prelude.hpp"
#include "jit/compile/nvrtc.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/plan_kernels.hpp"
#include "support/plan_steps.hpp"
#include "support/support.hpp"

namespace test_plan_phases {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

using Lines = std::vector<std::string>;

/// Graphs one after another, each with as many CTAs at a time as fit.
Plan lower_phases(const Lines& kernels, Arch arch) {
  using namespace lowering;
  constexpr int warps = 8;
  Plan plan;
  plan.kernel = plan.author = "phases";
  plan.target = Target::of(arch);
  int first_axis = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Graph& graph = plan_graph(kernels[i]);
    const Variant variant = dense_variant(graph);
    const GraphAnalysis analysis(graph, variant, plan.target);
    const MatmulPlans matmuls = plan_matmuls(analysis, warps);
    const Layouts layouts = choose_layouts(analysis, matmuls.plans, warps);
    const GraphPlace place{static_cast<int>(i), static_cast<int>(plan.tensors.size()), first_axis};
    plan.tensors.insert(plan.tensors.end(), graph.parameters.begin(), graph.parameters.end());
    const std::vector<TileReach> reaches = tile_reaches(graph);
    plan.reaches.insert(plan.reaches.end(), reaches.begin(), reaches.end());
    plan.variant.tensors.insert(plan.variant.tensors.end(), variant.tensors.begin(), variant.tensors.end());
    Role role{.name = "all", .warps = warps, .body = {}};
    const InMemory in_memory;
    GraphLowering lowering(analysis, matmuls.plans, layouts, 128, in_memory, place, plan, role);
    lowering.region(0);
    REQUIRE(lowering.must_be_in_memory().empty());
    Phase& phase = plan.phases.emplace_back();
    phase.roles.push_back(std::move(role));
    phase.first_axis = first_axis;
    phase.axes = static_cast<int>(graph.grid.size());
    phase.schedule.kind = Schedule::Kind::persistent;
    first_axis += phase.axes;
  }
  return plan;
}

/// The passes after lowering. They assign offsets, which tests may change.
Plan finished(
    Plan plan, const std::function<void(Plan&)>& move = [](Plan&) {}) {
  eliminate_dead_steps(plan);
  place_memory(plan);
  move(plan);
  plan.progress = Progress::placed;
  REQUIRE(violations(plan) == Lines{});
  choose_copies(plan);
  insert_barriers(plan);
  set_parameters(plan);
  REQUIRE(violations(plan) == Lines{});
  return plan;
}

/// Compiles the text. Returns nothing, or the errors.
std::string compiled(const Plan& plan) {
  KernelSource source;
  source.author = source.name = plan.kernel;
  const std::string kernel = emit(plan);
  source.text = prelude_for(kernel) + '\n' + kernel;
  return compile_check(source, plan.target.arch);
}

}  // namespace

TEST_CASE("graphs in one plan do not collide", "[plan][compiles]") {
  const std::string no_compiler = error_of([] { Nvrtc::instance(); });
  if (no_compiler != "(no error)") WARN("compiled by nobody: " << no_compiler);
  const Lines chosen[] = {
      {"pointwise", "pipelined"},
      {"pipelined", "pipelined"},
      {"pipelined", "normalized", "transposed", "shifted"},
  };
  for (const Lines& kernels : chosen)
    for (const Arch arch : {Arch::sm_80, Arch::sm_90a}) {
      INFO(fmt::format("{} for {}", fmt::join(kernels, ", "), arch.name()));
      const Plan plan = finished(lower_phases(kernels, arch));
      const std::string tree = tree_text(plan), text = emit(plan);
      CHECK(tree.find("role all: warps 0 to 7\n") == 0);
      for (std::size_t i = 1; i < kernels.size(); ++i) {
        CHECK(tree.find(fmt::format("g{}_", i)) != tree.npos);
        CHECK(text.find(fmt::format("g{}_", i)) != text.npos);
        CHECK(text.find(fmt::format("< blocks{};", i)) != text.npos);
      }
      if (no_compiler == "(no error)") CHECK(compiled(plan) == "");
    }
}

TEST_CASE("a graph's steps name their own tensors, scalars, grid and values", "[plan]") {
  const auto check = [](const Lines& kernels, std::initializer_list<const char*> steps) {
    const std::string tree = tree_text(finished(lower_phases(kernels, Arch::sm_90a)));
    for (const char* step : steps) {
      INFO(step << " in\n" << tree);
      CHECK(tree.find(step) != tree.npos);
    }
  };
  check({"pointwise", "pipelined"},
        {"load_6 = in0[block0 * 1024]", "cdiv(in3_extent1, 32)", "fetch g1_tile_17 <- in3[block1 * 128, g1_i_15 * 32]",
         "g1_carry_16 += g1_tile_17 g1_tile_18", "out5[block1 * 128, block2 * 128] by 2 = g1_carry_16"});
  check({"pipelined", "pointwise"}, {"fetch tile_17 <- in0[block0 * 128, i_15 * 32]",
                                     "out4[block2 * 1024] by 4 = add(exp(mul(g1_load_6, scalar5)"});
  // A graph that occurs twice has two copies of everything.
  const Plan twice = finished(lower_phases({"pipelined", "pipelined"}, Arch::sm_90a));
  CHECK(twice.buffers.size() == 4);
  CHECK(twice.loops.size() == 2);
  CHECK(twice.tensors.size() == 6);
}

TEST_CASE("phases reuse the same shared memory, one after the other", "[plan]") {
  const auto bytes = [](const Lines& kernels) { return finished(lower_phases(kernels, Arch::sm_90a)).shared_bytes; };
  CHECK(bytes({"pipelined", "transposed"}) == std::max(bytes({"pipelined"}), bytes({"transposed"})));
}

TEST_CASE("a phase waits for the one before it, and its CTAs for each other", "[plan]") {
  // The second phase has barriers but may have no CTA: then the third directly follows the first. Within its own tiles
  // it needs no such barrier, since it alternates between two places.
  Plan plan = finished(lower_phases({"transposed", "exchanged", "normalized"}, Arch::sm_90a), [](Plan& placed) {
    Scratch& last = placed.scratch[ScratchId{3}];
    last.offset = last.bytes;
  });
  Body& third = plan.phases[2].roles[0].body;
  const auto reduction = std::find_if(third.begin(), third.end(),
                                      [](const Step& step) { return step.action.is<Reduce>(); });
  REQUIRE(reduction != third.end());
  REQUIRE(reduction != third.begin());
  REQUIRE(std::prev(reduction)->action.is<Barrier>());
  third.erase(std::prev(reduction));
  CHECK(!violations(plan).empty());
}

}  // namespace test_plan_phases
