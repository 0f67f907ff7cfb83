// Tiles as TMA moves them: boxes of a tensor, each a panel wide. Along all axes but the contiguous one they may be in a
// slice from a constant start.
#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

enum class TmaUse : std::uint8_t {
  load,     ///< boxes as long as the buffer, with zeros beyond the tensor
  clipped,  ///< a load of no more rows than the tensor has
  store,
};
/// The tensor map of a load or a store: rows of the tile are along its axis `rows`, and columns along the tensor's
/// contiguous axis.
TensorMapId tma_tensors_of(const GraphAnalysis& analysis, Plan& plan, Id id, int rows, const Buffer& buffer,
                           TmaUse use);
/// The coordinate of a box along the tile's axis `axis`.
int box_axis(const GraphAnalysis& analysis, Id id, int axis);
/// Where panel `panel` of the tile begins, in an iteration of `loop` or after it; of a store, the panel from row
/// `first_row` of the tile on.
std::vector<TileCoordinate> place_of_panel(Steps& steps, Id loop, Id id, int panel, const Buffer& buffer,
                                           int first_row = 0);

}  // namespace tessera::internal::lowering
