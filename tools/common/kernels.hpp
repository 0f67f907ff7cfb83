// The kernels of Tessera's model and of the lessons by name, for tools that inspect or measure kernels.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/target/variant.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal {

struct NamedKernel {
  std::string name;              ///< "linear-128-bf16": the kernel, rows of its tile, element type of its arithmetic
  std::function<Graph()> graph;  ///< traced when called, after the graph passes
  std::function<void(Variant&)> unlike_dense = {};  ///< changes the variant of dense tensors to that of its launches
  std::optional<Arch> only = {};                    ///< the only GPU that has it, if others do not

  bool is_of(Arch gpu) const { return !only || *only == gpu; }
  /// The variant of its launches.
  Variant variant(const Graph& traced) const;
};

/// All of src/model/kernels.hpp, as in GPT-2 124M, and those of samples/; then, for sm_90a alone, matmuls with each
/// tile that choose() uses there, in clusters, with operands that threads copy or that are computed in the loop.
const std::vector<NamedKernel>& named_kernels();

/// The kernels of a GPU whose names match a pattern (fnmatch), or the named one, at least one; throws Error, with the
/// most similar names, if there is none.
std::vector<NamedKernel> find_kernels(std::string_view pattern, Arch gpu);

}  // namespace tessera::internal
