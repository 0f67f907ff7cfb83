#include "codegen/plan/verify/split_k_tiles.hpp"

#include <utility>

namespace tessera::internal::codegen {

void SplitKTiles::tiles(const TileLoop& loop) {
  diagnostics_.require(loop.k_iterations.has_value() == (split_k_ == SplitK::stream_k),
                       "k_iterations of tiles are counted where no grid shares them, or are not where one does");
  tile_k_iterations = loop.k_iterations;
}

void SplitKTiles::begin_tile() {
  cluster_barriers = 0;
  adds_up = tells_ = false;
  not_added_.clear();
}

void SplitKTiles::end_tile() {
  if (split_k_ != SplitK::stream_k) return;
  diagnostics_.about(nullptr);
  diagnostics_.require(not_added_.empty() && adds_up == tells_, "role {} does not put sums, or does not add them up",
                       role_.name);
}

void SplitKTiles::share(const SplitKRange& share) {
  diagnostics_.require(split_k_ != SplitK::none, "there is nobody to share k_iterations");
  diagnostics_.require(split_k_ != SplitK::stream_k || share.k_iterations == tile_k_iterations,
                       "it is a share of other k_iterations");
  split_first_ = share.first;
  split_count_ = share.count;
}

void SplitKTiles::loop(const Loop& loop) const {
  diagnostics_.require(
      split_k_ == SplitK::none || (loop.count.kind == Operand::Kind::value && loop.count.value == split_count_),
      "each of the blocks that share them runs all k_iterations");
}

std::optional<bool> SplitKTiles::enter(const IfFirstSplit& part, int elected) {
  diagnostics_.require(split_k_ != SplitK::none && elected == role_.threads(), "there is no first block of several");
  diagnostics_.require(part.share == (split_k_ == SplitK::stream_k ? split_first_ : ValueId{}),
                       "another number says which block is the first");
  return std::exchange(first_, part.first);
}

void SplitKTiles::enter(const ForEachPeer& each, int elected) {
  diagnostics_.require(split_k_ == SplitK::stream_k && first_ == true && elected == role_.threads(),
                       "there are no other blocks of a tile");
  diagnostics_.require(each.k_iterations == tile_k_iterations, "they are of other k_iterations");
  other_ = Other::unknown;
}

void SplitKTiles::leave(const ForEachPeer&) {
  diagnostics_.require(other_ == Other::added, "what another block put is not added");
  other_ = Other::none;
  not_added_.clear();
  adds_up = true;
}

void SplitKTiles::part(const StorePartial& put) {
  diagnostics_.require(first_ == false, "the first block adds up, and puts nothing");
  diagnostics_.require(part_ == Part::none, "others may read what was put before");
  is_where_others_read(put.scratch);
  part_ = Part::put;
}

void SplitKTiles::tell(int elected) {
  diagnostics_.require(split_k_ == SplitK::stream_k && elected == 1 && first_ == false,
                       "{} threads say that sums are there", elected);
  diagnostics_.require(part_ == Part::there, "sums may not all be put: a barrier stands before");
  part_ = Part::none;
  tells_ = true;
}

void SplitKTiles::await(int elected) {
  diagnostics_.require(elected == 1 && other_ == Other::unknown, "{} threads wait for another block's sums", elected);
  other_ = Other::awaited;
}

void SplitKTiles::part(const ReducePartials& add) {
  diagnostics_.require(first_ == true, "the first block alone adds up");
  is_where_others_read(add.scratch);
  if (split_k_ == SplitK::stream_k) {
    diagnostics_.require(other_ == Other::there,
                         "sums of another block may not be there: a wait and then a barrier stand before");
    other_ = Other::added;
    return;
  }
  diagnostics_.require(part_ == Part::there,
                       "sums that others put may not be there: a barrier of the cluster stands before");
  part_ = Part::read;
}

void SplitKTiles::cluster_barrier(int elected) {
  diagnostics_.require(split_k_ == SplitK::cluster && elected == role_.threads() && !first_,
                       "not all threads of the cluster come to it");
  diagnostics_.require(part_ != Part::there, "what the cluster's other blocks put is not added");
  ++cluster_barriers;
  part_ = part_ == Part::put ? Part::there : Part::none;
}

void SplitKTiles::met() {
  if (split_k_ == SplitK::stream_k && part_ == Part::put) part_ = Part::there;
  if (other_ == Other::awaited) other_ = Other::there;
}

void SplitKTiles::mma(ValueId sums) {
  if (split_k_ == SplitK::stream_k) not_added_.insert(plan_.values[sums].storage);
}

void SplitKTiles::use(const Step& step, ValueId value) const {
  const bool of_parts = step.action.is<StorePartial>() || step.action.is<ReducePartials>();
  diagnostics_.require(of_parts || !not_added_.contains(plan_.values[value].storage),
                       "a part of {} is used, without what other blocks add to it", name_of(plan_, value));
}

void SplitKTiles::end() const {
  diagnostics_.require(part_ == Part::none, "role {} ends while others may read its sums", role_.name);
}

void SplitKTiles::is_where_others_read(ScratchId id) const {
  diagnostics_.require(plan_.scratch[id].in_workspace == (split_k_ == SplitK::stream_k),
                       "other blocks do not read there");
}

}  // namespace tessera::internal::codegen
