// Tiles whose rounds several blocks of threads share: who puts sums, who adds them up, and when.
#pragma once
#include <optional>
#include <set>

#include "codegen/plan/verify.hpp"

namespace tessera::internal::codegen {

/// What a role's steps do about it, in order. `elected` threads of the role run the step at hand.
class SharedTiles {
 public:
  SharedTiles(Findings& findings, Sharing sharing, const Role& role)
      : findings_(findings), plan_(findings.plan), role_(role), sharing_(sharing) {}

  void tiles(const TileLoop& loop);
  void begin_tile();
  void end_tile();
  void share(const ShareRounds& share);
  void loop(const Loop& loop) const;
  /// The steps inside are those of the first block, or of others. Returns whose those around it are.
  std::optional<bool> enter(const OfPart& part, int elected);
  void leave(std::optional<bool> around) { first_ = around; }
  void enter(const EachPart& each, int elected);
  void leave(const EachPart& each);

  void part(const PutPart& put);
  void tell(int elected);
  void await(int elected);
  void part(const AddParts& add);
  /// One behind what the cluster's other blocks put, and one behind its sum: then they may go on.
  void cluster_barrier(int elected);
  /// All of the role's threads have met.
  void met();

  void multiply(ValueId sums);
  void use(const Step& step, ValueId value) const;
  void end() const;

  int cluster_barriers = 0;            ///< of a block of the grid
  std::optional<Operand> tile_rounds;  ///< where the grid shares them
  bool adds_up = false;                ///< sums of blocks that are not of a cluster

 private:
  void is_where_others_read(ScratchId id) const;

  Findings& findings_;
  const Plan& plan_;
  const Role& role_;
  const Sharing sharing_;
  std::optional<bool> first_;  // of blocks that share a tile the first, or the others, run the steps
  ValueId share_first_, share_count_;
  std::set<StorageId> not_added_;  // sums of a part of a tile's rounds
  bool tells_ = false;
  enum class Part : std::uint8_t { none, put, there, read } part_ = Part::none;                   // sums of this block
  enum class Other : std::uint8_t { none, unknown, awaited, there, added } other_ = Other::none;  // of the one at hand
};

}  // namespace tessera::internal::codegen
