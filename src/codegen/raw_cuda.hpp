// The source of a raw CUDA kernel.
#pragma once
#include "codegen/generate.hpp"

namespace tessera::internal {

/// Its parameters are a pointer for each tensor and the number for each scalar, in the graph's order, then the numbers
/// of the launch. Threads and bytes of shared memory are those of its launches, or 0 and -1 where these differ.
KernelSource raw_cuda(const Graph& graph);

/// The graph's cuda_op functions alone, with an empty kernel, to check that they compile.
KernelSource functions_alone(const Graph& graph);

}  // namespace tessera::internal
