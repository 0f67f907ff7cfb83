// Small kernels whose plans together contain every kind of step, each where it can be wrong.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan/plan.hpp"

/// "pipelined", "rows", ...: comments at the kernels explain their purpose.
const std::vector<std::string>& plan_kernels();
/// After the graph passes. Throws InternalError for an unknown name.
const tessera::internal::Graph& plan_graph(std::string_view kernel);
/// Its plan for dense, aligned tensors, after all passes.
tessera::internal::codegen::Plan plan_of(std::string_view kernel, tessera::internal::Arch arch = tessera::internal::Arch::sm_90a);
