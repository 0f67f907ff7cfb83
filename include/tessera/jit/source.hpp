// Generated code and compiler figures of a kernel, for users of C++.
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

/// The CUDA C++ of a kernel, generated from its graph after the passes, for dense, aligned tensors, with its plan as a
/// comment on top; and the plan alone. Neither NVRTC nor a GPU is needed.
std::string cuda_source(const Graph& graph, Arch gpu);
std::string plan_text(const Graph& graph, Arch gpu);

/// The resources of a GPU that a kernel uses.
struct KernelInfo {
  int threads = 0;                   ///< threads of a CTA; 0 for a cuda_kernel, whose launch sets them
  std::int64_t shared_bytes = 0;     ///< shared memory of a CTA, in bytes
  std::int64_t workspace_bytes = 0;  ///< global memory of a CTA in flight, in bytes: for tiles that fit nowhere else
  // Figures from NVRTC; empty without NVRTC, or if it does not know the architecture.
  std::optional<int> registers = {}, stack_bytes = {};  ///< of a thread
  std::optional<int> spill_store_bytes = {}, spill_load_bytes = {};
  std::optional<int> instructions = {};  ///< in the machine code
  std::string why_not_compiled = {};     ///< why the figures are missing; empty: they are present
};

/// Remarks of a kernel for dense, aligned tensors, by file and line; none for a cuda_kernel. Neither NVRTC nor a GPU is
/// needed.
std::vector<Remark> kernel_remarks(const Graph& graph, Arch gpu);
/// Compiles the kernel. Throws Error if it does not compile.
KernelInfo kernel_info(const Graph& graph, Arch gpu);

}  // namespace internal
}  // namespace tessera
