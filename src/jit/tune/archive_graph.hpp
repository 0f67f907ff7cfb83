// Graphs as bytes, for another process of the same build of Tessera.
#pragma once
#include <string>
#include <string_view>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// Functions of the host, which custom functions and raw CUDA kernels may have, are left out: see has_host_functions().
std::string archive(const Graph& graph);
/// Throws Error if the bytes are not those of a graph.
Graph unarchive(std::string_view bytes);

/// Does it need functions of the host to run on the CPU?
bool has_host_functions(const Graph& graph);

}  // namespace tessera::internal
