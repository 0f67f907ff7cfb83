// An independent definition of a whole graph: the possible contents of memory after a launch, element by element, as
// ops.def describes them. It shares no arithmetic with the executors.
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

/// Extents of the grid of a launch; none for a single CTA. Throws Error if a requirement of the kernel does not hold.
std::vector<std::int64_t> grid(const Graph& graph, std::span<const Argument> arguments);

/// The allowed results of any executor that follows ops.def, one tensor per parameter, empty for In and scalars. CTAs
/// run one after another over intervals. Undefined elements may have any value: those that CTAs read and write without
/// an order between them, and those of a store whose index depends on the rounding of reals. Reads the arguments'
/// memory, which must be the host's, and writes none. Throws Error if a requirement of the kernel certainly does not
/// hold. Calls `after_block` after each CTA: intervals with infinite ends take some processors a hundred times as long
/// as others.
std::vector<Tensor> run(const Graph& graph, std::span<const Argument> arguments, std::span<const std::int64_t> grid,
                        const std::function<void()>& after_block = {});

/// The first element that the launch left outside of its expected interval: "parameter 2 [3,1]: 0.5, expected [0.2,
/// 0.3]", parameters counted from 0. Empty if there is none.
std::string difference(const Graph& graph, std::span<const Argument> after, const std::vector<Tensor>& expected);

}  // namespace tessera::internal::reference
