// CUDA C++ of an author's, seen by its compiler before a kernel runs where nobody needs it.
#pragma once
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// Of a kernel for the CPU: compiles its text, or the expressions of its cuda_ops, where NVRTC is there, and warns if they
/// are not CUDA C++. Once for each text; what was compiled is kept in the cache.
void check_cuda_text(const Graph& graph);

}  // namespace tessera::internal
