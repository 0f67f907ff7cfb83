// What a kernel becomes, as text, for whoever asks in C++.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/codegen/arch.hpp"
#include "tessera/codegen/remark.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The CUDA C++ of a kernel, as the passes leave its graph, for dense, aligned tensors, its plan a comment on top; and the plan alone.
/// Neither NVRTC nor a GPU is needed.
std::string cuda_source(const Graph& graph, Arch gpu);
std::string plan_text(const Graph& graph, Arch gpu);

/// The resources that a kernel takes of a GPU.
struct KernelInfo {
  int threads = 0;                   ///< of a block; of a cuda_kernel, whose launch says, 0
  std::int64_t shared_bytes = 0;     ///< of shared memory, of a block
  std::int64_t workspace_bytes = 0;  ///< of global memory, of a block in flight: for tiles that nothing else holds
  // NVRTC's figures; empty where there is no NVRTC, or one that does not know the architecture.
  std::optional<int> registers = {}, stack_bytes = {};  ///< of a thread
  std::optional<int> spill_store_bytes = {}, spill_load_bytes = {};
  std::optional<int> instructions = {};  ///< of the machine code
  std::string why_not_compiled = {};     ///< why these are missing; empty: they are there
};

/// Remarks of a kernel for dense, aligned tensors, by file and line; none of a cuda_kernel. Neither NVRTC nor a GPU is needed.
std::vector<Remark> kernel_remarks(const Graph& graph, Arch gpu);
/// Compiles it. Throws Error if it does not compile.
KernelInfo kernel_info(const Graph& graph, Arch gpu);

}  // namespace internal
}  // namespace tessera
