// The whole way from a graph to CUDA C++, and what a launch of it must know.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/generate_options.hpp"
#include "codegen/target/kernel_parameter.hpp"
#include "codegen/target/variant.hpp"
#include "tessera/codegen/arch.hpp"
#include "tessera/codegen/remark.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// A kernel as CUDA C++.
struct KernelSource {
  std::string author;     ///< the kernel's name as the author gave it
  std::string name;       ///< of its extern "C" entry point; made of the author's
  std::string text;       ///< all that NVRTC is given; the plan's decisions are the comment on top
  std::string plan;       ///< decisions and all steps, as text
  bool by_hand = false;   ///< the author's: each line stands where `#line` has it
  std::string slow = {};  ///< what its author should know of tiles that registers cannot hold; empty: nothing
  std::vector<Remark> remarks = {};  ///< by the author's lines; by hand: none
  std::vector<KernelParameter> parameters = {};
  std::vector<TmaTensor> tma_tensors = {};  ///< tensors of parameters that are tensor maps
  int threads = 0;                      ///< of a block; by hand: as the launch says
  int shared_bytes = 0;                 ///< dynamic shared memory
  std::int64_t workspace_bytes = 0;     ///< of a block in flight; 0: none
  /// Blocks in flight take the grid's blocks one after another, so that a launch may have fewer of them than the grid:
  /// as many as fit the GPU. Else a launch has one for each.
  bool persistent = false;
  /// A launch may begin before the one before it has ended: the kernel waits for it by itself.
  bool waits_for_previous = false;
  /// Tensors of which it brings some before that, where the launch says that no launch before writes them.
  std::vector<int> prefetched_before_wait = {};
  /// cluster: persistent blocks may be launched in clusters of up to 8, each of which takes one of the grid's blocks
  /// after another; at most as many blocks as the loop of its product has rounds. grid: in any number that `abreast`
  /// divides.
  SplitK split_k = SplitK::none;
};

/// Lowers a graph, as the passes leave it, for a class of launches on an architecture. Never refuses a valid graph; the
/// same graph, variant and architecture give the same bytes, whatever compiler built Tessera.
KernelSource generate(const Graph& graph, const Variant& variant, Arch arch, const GenerateOptions& options = {});

/// The plan of a kernel as it is after one of the passes that make it ("lower", "plan_dce", ..., "parameters"), as text.
/// Throws Error with the choices for a pass that there is not.
std::string plan_after(const Graph& graph, const Variant& variant, Arch arch, std::string_view pass,
                       const GenerateOptions& options = {});

/// The text for a compiler. A `#line` counts on from where it stands, but a statement of the author becomes many lines:
/// so that compiler and tools name his for each of them, it is repeated before each.
std::string repeat_lines(std::string_view text);

}  // namespace tessera::internal
