// Matmuls of a role whose left operands come from registers: piece by piece of k, each piece's operand while the tensor
// cores multiply the piece before.
#pragma once
#include <functional>

#include "codegen/analysis/computed_operands.hpp"
#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// A tile in a pipeline stage: its buffer, and whether the buffer's rows run along the tile's first axis.
struct StagedTile {
  BufferId buffer;
  bool transposed = false;
};

/// A matmul of a k-iteration, and its left operand if that is computed.
struct PendingWgmma {
  Wgmma wgmma;
  Id left = no_id;
};

/// The pieces of k that left operands are read in, for 64 rows of a warp group.
struct FragmentPieces {
  int bytes = 64;
  std::size_t sets = 2;  ///< of registers; pieces alternate between them
};

class Fragments {
 public:
  /// `tiles`: those of the operands.
  Fragments(const std::map<Id, ComputedOperand>& operands, std::map<Id, StagedTile> tiles, int groups, RowOrder order,
            FragmentPieces pieces)
      : operands_(operands), tiles_(std::move(tiles)), groups_(groups), order_(order), pieces_(pieces) {}

  /// Reserves registers for the operands, before the loop.
  void reserve(Steps& steps);
  /// The matmuls of a k-iteration, whose stage at the pipeline state is full. At the end, the wgmmas of the last two
  /// pieces may be pending.
  void mma(Steps& steps, Id id, const std::vector<PendingWgmma>& matmuls);
  /// The operands' pieces from `first` of k. `wait` comes before their registers are written.
  std::map<Id, ValueId> take(Steps& steps, int first, PipelineStateId state, const std::function<void()>& wait);

 private:
  int piece_of_k(const Steps& steps, Id operand) const;
  StorageId registers_of(const Steps& steps, Id operand, int first) const;
  Sweep piece(const Steps& steps, Id operand, int first) const;
  Sweep half_piece(const Steps& steps, Id operand, int first) const;
  std::vector<ValueId> read(Steps& steps, Id operand, int first, PipelineStateId state) const;
  ValueId compute(Steps& steps, Id operand, int first, const std::vector<ValueId>& tiles) const;

  const std::map<Id, ComputedOperand>& operands_;
  const std::map<Id, StagedTile> tiles_;
  const int groups_;
  const RowOrder order_;
  const FragmentPieces pieces_;
  std::map<Id, std::vector<StorageId>> registers_;  // of an operand, for each set
};

}  // namespace tessera::internal::lowering
