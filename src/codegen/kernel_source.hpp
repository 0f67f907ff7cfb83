// From a plan to the facts that its launch needs.
#pragma once
#include <string_view>

#include "codegen/generate.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::internal {

class LoweringRecorder;

/// The line before the kernel in a generated text.
inline constexpr std::string_view kernel_mark = "// ---- kernel ----\n";

/// The text of a complete plan, with its decisions on top, then the helpers, then the kernel; and the facts that a
/// launch needs. A recorder that has seen the passes completes its record.
KernelSource kernel_source(const codegen::Plan& plan, LoweringRecorder* recorder = nullptr);
/// The same without texts.
KernelSource facts_of(const codegen::Plan& plan);

}  // namespace tessera::internal
