// Fused matmuls, as in attention: the scores of one matmul become, after some ops in registers, the left operand of the
// next in the same loop. The producer role loads tiles by TMA, each through a pipeline of its own. Consumer warp
// groups, each with rows of its own, multiply by wgmma and do the rest.
#pragma once
#include "codegen/schedule/kernel_schedule.hpp"

namespace tessera::internal::lowering {

/// A tile that matmuls read from shared memory.
struct FusedMatmulTile {
  Id load = no_id;
  int rows = 0, columns = 0;  ///< axes of the load, whatever they are to a matmul
  bool held = false;          ///< read before the loop, for all k-iterations; otherwise loaded in each
  int stages = 1;             ///< of its pipeline
  Id slice_extent = no_id;    ///< extent of the slice that its rows are in, if any; zeros beyond
};

/// A tile as an operand.
struct FusedMatmulOperand {
  int tile = -1;        ///< among the tiles; -1: the operand comes from registers
  bool k_major = true;  ///< rows of its buffer run along k
};

struct FusedMatmulMma {
  Id id = no_id;
  FusedMatmulOperand left, right;
};

/// The decisions of a schedule for a fused matmul.
struct FusedMatmul {
  Id loop = no_id;
  int groups = 1;  ///< warp groups, which divide the rows of all matmuls among them
  std::vector<FusedMatmulTile> tiles;
  std::vector<FusedMatmulMma> matmuls;  ///< in order
  /// The second of two matmuls runs together with the first of the next k-iteration, and the ops on the latter's result
  /// run meanwhile.
  bool overlaps = false;
  bool has_iteration = false;  ///< each grid tile has at least one
  /// In addition, the first matmul of the next grid tile runs together with those of the last k-iteration.
  bool runs_on = false;
  /// By node: a number that the producer needs to know which tiles to load, and that it computes itself.
  std::vector<char> ahead;
};

class FusedMatmulSchedule : public KernelSchedule {
 public:
  explicit FusedMatmulSchedule(FusedMatmul fused) : fused_(std::move(fused)) {}

  std::string text(const GraphAnalysis& analysis) const override;
  std::vector<Role> roles() const override;
  MatmulPlans matmuls(const GraphAnalysis& analysis) const override;
  void lower(const GraphAnalysis& analysis, const MatmulPlans& matmuls, const Layouts& layouts,
             const std::set<Id>& left_in_memory, Plan& plan) const override;

 private:
  FusedMatmul fused_;
};

}  // namespace tessera::internal::lowering
