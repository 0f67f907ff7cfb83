// The kernels of Tessera's model and of the lessons by name, for tools that look at kernels or measure them.
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
  std::string name;              ///< "linear-128-bf16": the kernel, rows of its tile, element type it computes in
  std::function<Graph()> graph;  ///< traced when called, as the passes leave it
  std::function<void(Variant&)> unlike_dense = {};  ///< what sets its launches apart from those of dense tensors
  std::optional<Arch> only = {};                    ///< the GPU that has it, if others do not

  bool is_of(Arch gpu) const { return !only || *only == gpu; }
  /// The class of its launches.
  Variant variant(const Graph& traced) const;
};

/// All of src/model/kernels.hpp, as GPT-2 124M has them, and those of samples/; then, for sm_90a alone, products of
/// each tile that choose() takes there, in clusters, with operands that threads copy or that are computed on the way.
const std::vector<NamedKernel>& named_kernels();

/// Those of a GPU whose names match a pattern (fnmatch), or the one that is named, one at least; Error, with the names
/// that are most like it, if there is none.
std::vector<NamedKernel> find_kernels(std::string_view pattern, Arch gpu);

}  // namespace tessera::internal
