// Split-K: CTAs that share the k-iterations of a tile, their partials, and the order of stores and reductions.
#pragma once
#include <optional>
#include <set>

#include "codegen/plan/verify/verify.hpp"

namespace tessera::internal::codegen {

/// Follows the steps of a role in order. `elected` threads of the role run the current step.
class SplitKTiles {
 public:
  SplitKTiles(Diagnostics& diagnostics, const Schedule& schedule, const Role& role)
      : diagnostics_(diagnostics),
        plan_(diagnostics.plan),
        role_(role),
        split_k_(schedule.split_k),
        multicast_(schedule.multicast > 1) {}

  void tiles(const TileLoop& loop);
  void begin_tile();
  void end_tile();
  void share(const SplitKRange& share);
  void loop(const Loop& loop) const;
  /// The steps inside are run by the first CTA, or by the others. Returns the same for the steps around.
  std::optional<bool> enter(const IfFirstSplit& part, int elected);
  void leave(std::optional<bool> around) { first_ = around; }
  void enter(const ForEachPeer& each, int elected);
  void leave(const ForEachPeer& each);

  void part(const StorePartial& put);
  void tell(int elected);
  void await(int elected);
  void part(const ReducePartials& add);
  /// One after the cluster's other CTAs have stored partials, and one after their reduction, so that they may continue.
  void cluster_barrier(int elected);
  /// All of the role's threads have met at a barrier.
  void met();

  void mma(ValueId sums);
  void use(const Step& step, ValueId value) const;
  void end() const;

  int cluster_barriers = 0;                  ///< per grid tile
  std::optional<Operand> tile_k_iterations;  ///< with stream_k
  bool adds_up = false;                      ///< partials of peer CTAs, with stream_k

 private:
  void is_where_others_read(ScratchId id) const;

  Diagnostics& diagnostics_;
  const Plan& plan_;
  const Role& role_;
  const SplitK split_k_;
  const bool multicast_;
  std::optional<bool> first_;  // do the first of the CTAs that share a tile, or the others, run the steps?
  ValueId split_first_, split_count_;
  std::set<StorageId> not_added_;  // accumulators of a part of a tile's k-iterations
  bool tells_ = false;
  enum class Part : std::uint8_t { none, put, there, read } part_ = Part::none;  // the partial of this CTA
  enum class Other : std::uint8_t { none, unknown, awaited, there, added } other_ = Other::none;  // of the current peer
};

}  // namespace tessera::internal::codegen
