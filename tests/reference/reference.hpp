// An independent meaning of a whole graph: what may lie in memory after a launch, element by element, as ops.def says
// it in words. It shares no arithmetic with the executors.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reference/element.hpp"
#include "tessera/graph/argument.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::reference {

struct Tensor {
  std::vector<Element> elements;  ///< row-major over the argument's extents
};

/// Extents of the grid of a launch; none for a single block. Throws Error if the kernel requires what does not hold.
std::vector<std::int64_t> grid(const Graph& graph, std::span<const Argument> arguments);

/// What any executor that keeps to ops.def may leave in memory, one tensor per parameter, empty for In and scalars.
/// Blocks are run one after another over intervals. What
/// nobody defined may be anything: what blocks read and write without order between them, what a store leaves whose
/// place depends on the rounding of reals. Reads the arguments' memory, which must be the host's, and writes none.
/// Throws Error if the kernel requires what surely does not hold. After each block it calls `after_block`: intervals of
/// infinite ends take some processors a hundred times as long as others.
std::vector<Tensor> run(const Graph& graph, std::span<const Argument> arguments, std::span<const std::int64_t> grid,
                        const std::function<void()>& after_block = {});

/// The first element that the launch left outside of what is expected: "parameter 2 [3,1]: 0.5, expected [0.2, 0.3]",
/// parameters counted from 0. Empty if there is none.
std::string difference(const Graph& graph, std::span<const Argument> after, const std::vector<Tensor>& expected);

}  // namespace tessera::internal::reference
