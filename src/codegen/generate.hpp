// From a graph to CUDA C++, and the facts that its launch needs.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/generate_options.hpp"
#include "codegen/target/kernel_parameter.hpp"
#include "codegen/target/stamps.hpp"
#include "codegen/target/variant.hpp"
#include "tessera/codegen/arch.hpp"
#include "tessera/codegen/remark.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

struct LoweringRecord;

/// A kernel as CUDA C++.
struct KernelSource {
  std::string author;      ///< the kernel's name as its author wrote it
  std::string name;        ///< name of the extern "C" entry point, derived from `author`
  std::string text;        ///< the text for NVRTC; the comment on top has the plan's decisions
  std::string plan;        ///< decisions and all steps, as text in the author's words
  bool by_hand = false;    ///< raw CUDA C++ of the author, with `#line` where it is written
  std::string shown = {};  ///< the text in the author's words, for dumps; empty: they are not known
  std::string slow = {};   ///< advice on tiles that registers cannot hold; empty: none
  std::shared_ptr<const LoweringRecord> record = {};  ///< null: none was asked for, or it is raw CUDA C++
  std::vector<Remark> remarks = {};                   ///< sorted by the author's lines; none for raw CUDA
  std::vector<KernelParameter> parameters = {};
  bool index64 = false;                     ///< offsets, and strides in parameters, have 64 bits
  std::vector<TmaTensor> tma_tensors = {};  ///< tensors of parameters that are tensor maps
  int threads = 0;                          ///< of a CTA; raw CUDA: from the launch, 0 if it varies
  int shared_bytes = 0;                     ///< dynamic shared memory; raw CUDA: -1 if it varies
  std::int64_t workspace_bytes = 0;         ///< of each CTA in flight; 0: none
  /// Each CTA takes one grid tile after another, so a launch may have fewer CTAs than grid tiles: as many as fit the
  /// GPU. Otherwise a launch has one CTA for each grid tile.
  bool persistent = false;
  /// The kernel itself waits for the previous launch (PDL): it may begin before that has ended.
  bool waits_for_previous = false;
  /// Tensors that it prefetches before that wait, where the launch says that no earlier launch writes them.
  std::vector<int> prefetched_before_wait = {};
  /// cluster: persistent CTAs may be launched in clusters of up to 8; each cluster takes one grid tile after another. A
  /// cluster has at most as many CTAs as the matmul's loop has k-iterations. stream_k: any number of CTAs that is a
  /// multiple of `SplitKLaunch::lockstep_rows`.
  SplitK split_k = SplitK::none;
  StampTable stamps = {};  ///< of a stamped variant
  int multicast = 1;  ///< CTAs of a cluster, each with its own grid tile along the first axis, that load for each other
};

/// Lowers a graph, after the graph passes, for a class of launches on an architecture. Never rejects a valid graph. The
/// same graph, variant and architecture always produce the same bytes, whatever compiler built Tessera.
KernelSource generate(const Graph& graph, const Variant& variant, Arch arch, const GenerateOptions& options = {});

/// The plan of a kernel after one of the plan passes ("lower", "plan_dce", ..., "parameters"), as text. Throws Error,
/// which lists the passes, for an unknown name.
std::string plan_after(const Graph& graph, const Variant& variant, Arch arch, std::string_view pass,
                       const GenerateOptions& options = {});

/// The text for a compiler. A `#line` directive counts on from its line, but one statement of the author becomes many
/// lines. So the directive is repeated before each of them, and compilers and tools name the author's line.
std::string repeat_lines(std::string_view text);

}  // namespace tessera::internal
