// From a graph to a plan: runs the passes of passes.def.
#pragma once
#include <functional>
#include <string_view>

#include "codegen/generate_options.hpp"
#include "codegen/passes/plan/planning.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::internal {
class LoweringRecorder;
}

namespace tessera::internal::codegen {

/// Sees the plan after each pass. All passes run again from the first when one of them asks for it.
using AfterPass = std::function<void(std::string_view pass, const Plan& plan)>;
/// The plan of a graph for a class of launches.
Plan make_plan(const Graph& graph, const Variant& variant, Arch arch, const GenerateOptions& options,
               const AfterPass& after = {}, LoweringRecorder* recorder = nullptr);

}  // namespace tessera::internal::codegen
