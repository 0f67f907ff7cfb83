// From a graph to a plan: the passes, in order, as a table.
#pragma once
#include <functional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "codegen/generate_options.hpp"
#include "codegen/lower/fused_matmul.hpp"
#include "codegen/lower/lower.hpp"
#include "codegen/lower/warp_specialization.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::internal::lowering {

/// How a kernel's elements are first spread: with so many warps, and at most so many registers for a value.
struct Attempt {
  int warps, most_registers;
  int candidate = -1;  ///< of those in which roles share the work; -1: one role does all
};

/// Roles that share the work.
using ScheduleCandidate = std::variant<WarpSpecializedGemm, FusedMatmul>;

/// A plan in the making.
struct Planning {
  Planning(const GraphAnalysis& analysis, std::vector<TileReach> reaches, bool debug);

  const GraphAnalysis& analysis;
  const std::vector<TileReach> reaches;  ///< those that a launch knows of
  const bool debug;  ///< the kernel checks itself
  Plan plan;
  std::vector<Attempt> attempts;  ///< from the one that is wanted to those that take fewer registers
  std::size_t attempt = 0;
  InMemory in_memory;
  bool has_products = false;
  /// Ways in which roles share the work, the best first; and why there are none, or none that fits, and what is in
  /// their way.
  std::vector<ScheduleCandidate> candidates;
  std::string why_not, why_not_split;
  Location where;
};

struct PlanPass {
  std::string_view name, what;
  /// False: the plan is to be made again from the first pass on, by what the pass has noted.
  bool (*run)(Planning&);
  std::string_view was = {};  ///< its name in version 0.3, if that was another
};
std::span<const PlanPass> plan_passes();

/// What a launch of the plan fills in; with this it is complete.
void set_parameters(Plan& plan);

}  // namespace tessera::internal::lowering

namespace tessera::internal::codegen {

/// Sees the plan after each pass; the passes run again from the first on when one of them finds that they must.
using AfterPass = std::function<void(std::string_view pass, const Plan& plan)>;
/// The plan of a graph for a class of launches.
Plan make_plan(const Graph& graph, const Variant& variant, Arch arch, const GenerateOptions& options,
               const AfterPass& after = {});

}  // namespace tessera::internal::codegen
