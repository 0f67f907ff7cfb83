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
/// The tensor map of a load or a store: rows of the buffer are along axes `rows` of the tile, and columns along the
/// tensor's contiguous axis. All other axes have an extent of 1.
TensorMapId tma_tensors_of(const GraphAnalysis& analysis, Plan& plan, Id id, const Axes& rows, const Buffer& buffer,
                           TmaUse use);
/// The coordinate of a box along the outermost axis of its rows.
int box_axis(const GraphAnalysis& analysis, Id id, const Axes& rows);
/// Where panel `panel` of the tile begins, in an iteration of `loop` or after it; of a store, the panel from row
/// `first_row` of the tile on.
std::vector<TileCoordinate> place_of_panel(Steps& steps, Id loop, Id id, const Axes& rows, int panel,
                                           const Buffer& buffer, int first_row = 0);

}  // namespace tessera::internal::lowering
