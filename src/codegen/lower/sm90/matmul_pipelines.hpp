// Shared between the roles of a warp-specialized kernel: the pipelines with the tiles of all operands, and the
// registers of each role.
#pragma once
#include "codegen/lower/lower_steps.hpp"
#include "codegen/schedule/warp_specialized.hpp"

namespace tessera::internal::lowering {

class MatmulPipelines {
 public:
  /// Adds the buffers, tensor maps and pipelines to the plan.
  MatmulPipelines(const GraphAnalysis& analysis, const WarpSpecialization& how, const std::map<Id, MatmulPlan>& matmuls,
                  Plan& plan);

  /// A tile that the producer copies and matmuls read.
  struct Tile {
    BufferId buffer;
    TensorMapId map;  ///< if TMA loads it
    int pipeline;     ///< its number in the schedule
  };

  const Tile& tile(const WgmmaOperand& operand) const { return tiles[static_cast<std::size_t>(operand.tile)]; }
  const ProducedTile& produced(int tile) const { return how.tiles[static_cast<std::size_t>(tile)]; }
  const Matmul& matmul(Id id) const { return matmuls.at(id).matmul; }
  /// May a tensor have fewer rows than a stage?
  bool is_clipped() const;
  /// The CTAs that load a tile together, each a part of its rows.
  int parts(const ProducedTile& tile) const { return how.multicast && !tile.left ? multicast_ctas : 1; }
  /// Registers of a producer thread for data that it copies.
  int of_copies_under_way(int element_bytes) const;
  /// Registers of a thread. 0, not set, for one consumer group of one warp group that has the multiprocessor alone:
  /// threads have the maximum anyway.
  int producer_registers() const;
  int consumer_registers() const;
  /// May the producer load right operands, mostly weights, before the PDL wait?
  bool prefetches() const { return prefetches_; }

  const GraphAnalysis& analysis;
  const WarpSpecialization& how;
  const std::map<Id, MatmulPlan>& matmuls;
  Plan& plan;
  std::vector<Tile> tiles;            ///< those of the schedule
  std::vector<PipelineId> pipelines;  ///< those of the schedule

 private:
  bool may_prefetch() const;
  bool divides_registers() const;
  bool copies_many() const;
  Tile make(const ProducedTile& tile, int pipeline, bool transposed);

  bool prefetches_ = false;
};

}  // namespace tessera::internal::lowering
