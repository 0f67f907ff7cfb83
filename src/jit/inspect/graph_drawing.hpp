// Draws a graph in layers.
#pragma once
#include <string>

#include "codegen/lowering_record.hpp"

namespace tessera::internal {

/// The operations on tiles and tensors as SVG, each below its operands. Scalars and indices are left out. A box is a
/// group of class "node" with the node's number as data-node. Empty if there is none.
std::string graph_svg(const LoweringRecord& record);

}  // namespace tessera::internal
