// The source of a kernel that its author wrote in CUDA C++.
#pragma once
#include "codegen/generate.hpp"

namespace tessera::internal {

/// Its parameters are a pointer for each tensor and the number for each scalar, in the graph's order, then the launch's
/// own numbers. Threads and bytes of shared memory are those of its launches, 0 and -1 where these differ.
KernelSource raw_cuda(const Graph& graph);

/// "float name(float a, float b)", of so many operands.
std::string function_head(std::string_view type, std::string_view name, std::size_t operands);
/// The function of a cuda_op. The compiler names the op where its expression is wrong, as a directive gives it as the
/// file.
std::string function_text(const CustomFunction& function);
/// A text of these functions alone, and of an empty kernel: for a compiler to look at.
KernelSource functions_alone(const Graph& graph);

}  // namespace tessera::internal
