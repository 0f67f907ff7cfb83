#include "codegen/make_plan.hpp"

#include <fmt/format.h>

#include "codegen/plan/verify/verify_plan.hpp"
#include "codegen/schedule/split_matmuls.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::codegen {

Plan make_plan(const Graph& whole, const Variant& variant, Arch arch, const GenerateOptions& options,
               const AfterPass& after) {
  using namespace lowering;
  if (arch.number() < 80)
    throw Error(fmt::format("kernel '{}' cannot be generated for {}: sm_80 is the oldest architecture", whole.name,
                            arch.name()));
  const Target target = Target::of(arch, options.warp_specialize);
  const std::optional<Graph> split = split_matmuls(whole, target);
  const GraphAnalysis analysis(split ? *split : whole, variant, target);
  Planning planning{.analysis = analysis, .reaches = tile_reaches(whole), .debug = options.debug};
  const std::span<const PlanPass> passes = plan_passes();
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const bool done = passes[i].run(planning);
    if (done) {
      if (options.verify) verify(planning.plan, passes[i].name);
      if (after) after(passes[i].name, planning.plan);
    } else {
      i = static_cast<std::size_t>(-1);  // back to the first pass
    }
  }
  return std::move(planning.plan);
}

}  // namespace tessera::internal::codegen
