// The kernels of Tessera's model and of the lessons by name, for tools that look at kernels or measure them.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace tessera {

struct NamedKernel {
  std::string name;              ///< "linear-128-bf16": the kernel, rows of its tile, element type it computes in
  std::function<Graph()> graph;  ///< traced when called, as the passes leave it
};

/// All of src/model/kernels.hpp, as GPT-2 124M has them; and those of samples/.
const std::vector<NamedKernel>& named_kernels();

/// Those whose names match a pattern (fnmatch), one at least; Error, listing the names, if there is none.
std::vector<NamedKernel> find_kernels(std::string_view pattern);

}  // namespace tessera
