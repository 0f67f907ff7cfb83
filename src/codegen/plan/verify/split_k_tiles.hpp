// Tiles whose rounds several blocks of threads share: who puts sums, who adds them up, and when.
#pragma once
#include <optional>
#include <set>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {

/// What a role's steps do about it, in order. `elected` threads of the role run the step at hand.
class SplitKTiles {
 public:
  SplitKTiles(Diagnostics& diagnostics, SplitK split_k, const Role& role)
      : diagnostics_(diagnostics), plan_(diagnostics.plan), role_(role), split_k_(split_k) {}

  void tiles(const TileLoop& loop);
  void begin_tile();
  void end_tile();
  void share(const SplitKRange& share);
  void loop(const Loop& loop) const;
  /// The steps inside are those of the first block, or of others. Returns whose those around it are.
  std::optional<bool> enter(const IfFirstSplit& part, int elected);
  void leave(std::optional<bool> around) { first_ = around; }
  void enter(const ForEachPeer& each, int elected);
  void leave(const ForEachPeer& each);

  void part(const StorePartial& put);
  void tell(int elected);
  void await(int elected);
  void part(const ReducePartials& add);
  /// One behind what the cluster's other blocks put, and one behind its sum: then they may go on.
  void cluster_barrier(int elected);
  /// All of the role's threads have met.
  void met();

  void mma(ValueId sums);
  void use(const Step& step, ValueId value) const;
  void end() const;

  int cluster_barriers = 0;                  ///< of a block of the grid
  std::optional<Operand> tile_k_iterations;  ///< where the grid shares them
  bool adds_up = false;                      ///< sums of blocks that are not of a cluster

 private:
  void is_where_others_read(ScratchId id) const;

  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Role& role_;
  const SplitK split_k_;
  std::optional<bool> first_;  // of blocks that share a tile the first, or the others, run the steps
  ValueId split_first_, split_count_;
  std::set<StorageId> not_added_;  // sums of a part of a tile's rounds
  bool tells_ = false;
  enum class Part : std::uint8_t { none, put, there, read } part_ = Part::none;                   // sums of this block
  enum class Other : std::uint8_t { none, unknown, awaited, there, added } other_ = Other::none;  // of the one at hand
};

}  // namespace tessera::internal::codegen
