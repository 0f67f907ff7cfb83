// Checks a user's CUDA C++ with NVRTC when a kernel runs on the CPU, which does not need it.
#pragma once
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// For a kernel that runs on the CPU: if NVRTC is available, compiles the kernel's text, or the expressions of its
/// cuda_ops, and warns if they are not valid CUDA C++. Each text is compiled once and kept in the cache.
void check_cuda_text(const Graph& graph);

}  // namespace tessera::internal
