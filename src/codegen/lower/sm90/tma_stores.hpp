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

  const MatmulPipelines& pipelines_;
  Steps& steps_;
  BufferId buffers_[2];
  const int axis_;  // of the tile, which is stored in parts along it
  int extent_ = 0;  // of a part
  int parts_ = 0;   // of a tile
};

}  // namespace tessera::internal::lowering
