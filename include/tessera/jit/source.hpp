// What a kernel becomes, as text, for whoever asks in C++.
#pragma once
#include <string>

#include "tessera/codegen/arch.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The CUDA C++ of a kernel, as the passes leave its graph, for dense, aligned tensors, its plan a comment on top; and the plan alone.
/// Neither NVRTC nor a GPU is needed.
std::string cuda_source(const Graph& graph, Arch gpu);
std::string plan_text(const Graph& graph, Arch gpu);

}  // namespace internal
}  // namespace tessera
