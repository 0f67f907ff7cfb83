// One persistent kernel that does the work of a sequence of launches (a "megakernel"). Its CTAs are all on the GPU at
// the same time. They compute the grid tiles of one launch after another, and meet at a grid barrier between two
// launches. Steps of a kernel before its PDL wait, such as loads of weights, come before a CTA waits at the barrier.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/parameter_values.hpp"

namespace tessera::internal {

/// A launch of the sequence. `graph` is the graph after the passes.
struct SequenceLaunch {
  const Graph* graph;
  Variant variant;
};

struct PersistentSource {
  /// Its parameters are the table of launches, their number, and a u32 that is 0 before and after a launch.
  KernelSource kernel;
  std::vector<KernelSource> codes;   ///< what the kernel can do: launches of equal graph and variant have one code
  std::vector<std::size_t> code_of;  ///< the code of each launch
  std::size_t launch_bytes = 0;      ///< of a launch in the table
  int ctas = 1;                      ///< on a multiprocessor, at most
};

/// The persistent kernel of a sequence, of which a multiprocessor has at most `ctas` CTAs. Throws PersistentRefused
/// that names a launch and the reason if the sequence cannot be one kernel: a launch is warp-specialized, uses
/// clusters, tensor maps or a workspace, or has no place to wait.
PersistentSource generate_persistent(std::string_view name, std::span<const SequenceLaunch> launches, int ctas,
                                     Arch arch, const GenerateOptions& options = {});

/// Writes a launch to the table: `to` has PersistentSource::launch_bytes.
void write_launch(const PersistentSource& source, std::size_t launch, const Graph& graph,
                  std::span<const Argument> arguments, std::span<const std::int64_t> grid, const LaunchValues& values,
                  std::byte* to);

}  // namespace tessera::internal
