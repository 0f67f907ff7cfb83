// Tiles as the copy engine moves them: boxes of a tensor, each a panel wide. Of an axis but the fastest they may be of
// a slice from a constant on.
#pragma once
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

enum class TmaUse : std::uint8_t {
  load,     ///< boxes as long as the buffer, zeros beyond the tensor
  clipped,  ///< a load of no more rows than the tensor has
  store,
};
/// Of a load or a store: a tile whose rows lie along `rows`, an axis of it, and columns along its tensor's neighbours.
TensorMapId tma_tensors_of(const GraphAnalysis& analysis, Plan& plan, Id id, int rows, const Buffer& buffer,
                           TmaUse use);
/// Where panel `panel` of the tile begins, in a round of `loop` or behind it.
std::vector<TileCoordinate> place_of_panel(Steps& steps, Id loop, Id id, int panel, const Buffer& buffer);

}  // namespace tessera::internal::lowering
