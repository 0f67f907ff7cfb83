// The source of a kernel that its author wrote in CUDA C++.
#pragma once
#include "codegen/generate.hpp"

namespace tessera::internal {

/// Its parameters are a pointer for each tensor and the number for each scalar, in the graph's order, then the launch's
/// own numbers. Threads and bytes of shared memory are those of its launches, 0 and -1 where these differ.
KernelSource raw_cuda(const Graph& graph);

/// A text of the graph's cuda_op functions alone, and of an empty kernel: for a compiler to look at.
KernelSource functions_alone(const Graph& graph);

}  // namespace tessera::internal
