// Products of a role whose left operands are computed on the way: piece by piece of k, a piece's operand while the
// tensor cores multiply the one before.
#pragma once
#include <array>

#include "codegen/analysis/computed_operands.hpp"
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// Where a pipeline has a tile: in which buffer, and do its rows run along the tile's first axis?
struct StagedTile {
  BufferId buffer;
  bool transposed = false;
};

/// A product of a round, and its left operand if that is computed.
struct PendingWgmma {
  Wgmma wgmma;
  Id left = no_id;
};

class Fragments {
 public:
  /// `tiles`: of the operands.
  Fragments(const std::map<Id, ComputedOperand>& operands, std::map<Id, StagedTile> tiles, int groups)
      : operands_(operands), tiles_(std::move(tiles)), groups_(groups) {}

  /// Registers for the operands, ahead of the loop.
  void reserve(Steps& steps);
  /// The products of a round, of which the stage at the cursor is full. At the end those of the last two pieces may be
  /// open.
  void mma(Steps& steps, Id id, const std::vector<PendingWgmma>& matmuls);

 private:
  int piece_of_k(const Steps& steps, Id operand) const;
  Sweep piece(const Steps& steps, Id operand, int first) const;
  std::vector<ValueId> read(Steps& steps, Id operand, int first, PipelineStateId state) const;
  ValueId compute(Steps& steps, Id operand, int first, const std::vector<ValueId>& tiles) const;

  const std::map<Id, ComputedOperand>& operands_;
  const std::map<Id, StagedTile> tiles_;
  const int groups_;
  std::map<Id, std::array<StorageId, 2>> registers_;  // of an operand, which pieces have in turn
};

}  // namespace tessera::internal::lowering
