// Stores of accumulators by TMA: part after part, through two buffers alternately.
#pragma once
#include "codegen/lower/sm90/warp_role.hpp"

namespace tessera::internal::lowering {

class TmaStores {
 public:
  /// Adds the buffers to the plan, if the schedule has such stores.
  TmaStores(const MatmulPipelines& pipelines, GraphLowering& graph);

  /// Lowers a store, if TMA does it.
  bool store(Id id) const;
  /// After the last grid tile: waits until the stores have read the buffers.
  void wait() const;

 private:
  std::vector<TileCoordinate> place_of(Id store, int part, int panel, BufferId buffer) const;
  // The tile's axes that are the buffer's rows.
  Axes rows_of(Id store) const;
  // The axis along which the tile is stored in parts.
  int axis_of(Id store) const { return pipelines_.how.transposed ? 0 : steps_.node(store).shape.rank() - 1; }

  const MatmulPipelines& pipelines_;
  Steps& steps_;
  BufferId buffers_[2];
  int extent_ = 0;  // of a part
  int parts_ = 0;   // of a tile
};

}  // namespace tessera::internal::lowering
