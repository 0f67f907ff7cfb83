// CUDA C++ of an author's, seen by its compiler before a kernel runs where nobody needs it.
#pragma once
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// For a kernel that runs on the CPU: if NVRTC is there, compiles the kernel's text, or the expressions of its cuda_ops, and
/// warns if they are not CUDA C++. Each text is compiled once and kept in the cache.
void check_cuda_text(const Graph& graph);

}  // namespace tessera::internal
