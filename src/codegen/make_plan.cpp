#include "codegen/make_plan.hpp"

#include <fmt/format.h>

#include "codegen/author/author_words.hpp"
#include "codegen/forms/swap_operands.hpp"
#include "codegen/forms/widen_fp8.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/verify/verify_plan.hpp"
#include "codegen/schedule/split_matmuls.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::codegen {
namespace {

using namespace lowering;

// Runs the passes until they accept a schedule; false: they reject all.
bool run_passes(Planning& planning, const GenerateOptions& options, const PlanObserver& observer) {
  const std::span<const PlanPass> passes = plan_passes();
  if (observer.begins) observer.begins(planning.analysis);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (!planning.search.has_current()) return false;
    const bool done = passes[i].run(planning);
    if (done) {
      if (options.verify) verify(planning.plan, passes[i].name);
      if (observer.after_pass) observer.after_pass(passes[i], planning.plan);
    } else {
      if (observer.rejected) observer.rejected();
      i = static_cast<std::size_t>(-1);  // back to the first pass
    }
  }
  if (options.read_source)
    planning.plan.words = author::author_words(planning.analysis, planning.plan, options.read_source);
  return true;
}

}  // namespace

Plan make_plan(const Graph& whole, const Variant& variant, Arch arch, const GenerateOptions& options,
               const PlanObserver& observer) {
  if (arch.number() < 80)
    throw Error(fmt::format("kernel '{}' cannot be generated for {}: sm_80 is the oldest architecture", whole.name,
                            arch.name()));
  const Target target = Target::of(arch, options.warp_specialize);
  const auto planning_of = [&](const GraphAnalysis& analysis, SearchHistory history, SearchedPatterns patterns) {
    return Planning{.analysis = analysis,
                    .reaches = tile_reaches(whole),
                    .debug = options.debug,
                    .in_sequence = options.in_sequence,
                    .search = {analysis, options.debug, std::move(history), patterns}};
  };
  SearchHistory history;
  // A plan for a form of the kernel that only warp-specialized schedules suit.
  const auto plan_of = [&](const GraphAnalysis& analysis) -> std::optional<Plan> {
    Planning planning = planning_of(analysis, std::move(history), SearchedPatterns::warp_specialized);
    if (run_passes(planning, options, observer)) return std::move(planning.plan);
    history = planning.search.history();
    return std::nullopt;
  };
  const bool fp8 = multiplies_fp8(whole);
  if (target.tier == Target::Tier::wgmma && multiplies(whole)) {
    const GraphAnalysis analysis(whole, variant, target);
    if (std::optional<Graph> swapped = swap_operands(analysis)) {
      swapped = dce(constant_fold(*swapped));
      if (std::optional<Plan> plan = plan_of(GraphAnalysis(*swapped, variant, target))) return std::move(*plan);
      history = {.log = std::move(history.log), .why_not_swapped = std::move(history.refusal.why)};
    }
    if (fp8)
      if (std::optional<Plan> plan = plan_of(analysis)) return std::move(*plan);
  }
  const Graph as_f16 = fp8 ? dce(constant_fold(widen_fp8(whole))) : Graph();
  const Graph& graph = fp8 ? as_f16 : whole;
  const std::optional<Graph> split = split_matmuls(graph, target);
  const GraphAnalysis analysis(split ? *split : graph, variant, target);
  Planning planning = planning_of(analysis, std::move(history), SearchedPatterns::all);
  if (!run_passes(planning, options, observer))
    throw InternalError(fmt::format("no schedule suits kernel '{}'", whole.name));
  return std::move(planning.plan);
}

}  // namespace tessera::internal::codegen
