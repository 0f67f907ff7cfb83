// Graph to graph: multiplies fp8 operands as f16.
#pragma once
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// The graph with mma of fp8 as mma of f16, which represents all values of fp8: for kernels in which wgmma does not
/// take fp8 operands as they are, and for other architectures. The products are exact, and their sums are f32.
Graph widen_fp8(const Graph& graph);

}  // namespace tessera::internal
