// Small kernels whose plans have between them every kind of step, each of them where it may go wrong.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan/plan.hpp"

/// "pipelined", "rows", ...: what a kernel is there for stands beside it.
const std::vector<std::string>& plan_kernels();
/// As the passes over graphs leave it. Throws InternalError for a name that there is not.
const tessera::internal::Graph& plan_graph(std::string_view kernel);
/// Its plan for dense, aligned tensors, after all passes.
tessera::internal::codegen::Plan plan_of(std::string_view kernel, tessera::internal::Arch arch = tessera::internal::Arch::sm_90a);
