#include "codegen/plan/verify/split_k_tiles.hpp"

#include <utility>

namespace tessera::internal::codegen {

void SplitKTiles::tiles(const TileLoop& loop) {
  diagnostics_.require(loop.k_iterations.has_value() == (split_k_ == SplitK::stream_k),
                       "a tile loop has k-iterations without stream-K, or none with it");
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
  diagnostics_.require(not_added_.empty() && adds_up == tells_,
                       "role {} does not store partials, or does not reduce them", role_.name);
}

void SplitKTiles::share(const SplitKRange& share) {
  diagnostics_.require(split_k_ != SplitK::none, "there is no split-K to share k-iterations");
  diagnostics_.require(split_k_ != SplitK::stream_k || share.k_iterations == tile_k_iterations,
                       "it is a range of other k-iterations");
  split_first_ = share.first;
  split_count_ = share.count;
}

void SplitKTiles::loop(const Loop& loop) const {
  diagnostics_.require(
      split_k_ == SplitK::none || (loop.count.kind == Operand::Kind::value && loop.count.value == split_count_),
      "each of the CTAs that share a tile runs all k-iterations");
}

std::optional<bool> SplitKTiles::enter(const IfFirstSplit& part, int elected) {
  diagnostics_.require(split_k_ != SplitK::none && elected == role_.threads(), "there is no first CTA among several");
  diagnostics_.require(part.share == (split_k_ == SplitK::stream_k ? split_first_ : ValueId{}),
                       "another number determines the first CTA");
  return std::exchange(first_, part.first);
}

void SplitKTiles::enter(const ForEachPeer& each, int elected) {
  diagnostics_.require(split_k_ == SplitK::stream_k && first_ == true && elected == role_.threads(),
                       "the tile has no peer CTAs here");
  diagnostics_.require(each.k_iterations == tile_k_iterations, "peers are for other k-iterations");
  other_ = Other::unknown;
}

void SplitKTiles::leave(const ForEachPeer&) {
  diagnostics_.require(other_ == Other::added, "the partial of a peer CTA is not reduced");
  other_ = Other::none;
  not_added_.clear();
  adds_up = true;
}

void SplitKTiles::part(const StorePartial& put) {
  diagnostics_.require(first_ == false, "the first CTA reduces partials, and stores none");
  diagnostics_.require(part_ == Part::none, "other CTAs may read the previous partial");
  is_where_others_read(put.scratch);
  part_ = Part::put;
}

void SplitKTiles::tell(int elected) {
  diagnostics_.require(split_k_ == SplitK::stream_k && elected == 1 && first_ == false, "{} threads signal a partial",
                       elected);
  diagnostics_.require(part_ == Part::there, "the partial may be incomplete: a barrier must precede the signal");
  part_ = Part::none;
  tells_ = true;
}

void SplitKTiles::await(int elected) {
  diagnostics_.require(elected == 1 && other_ == Other::unknown, "{} threads wait for a peer CTA's partial", elected);
  other_ = Other::awaited;
}

void SplitKTiles::part(const ReducePartials& add) {
  diagnostics_.require(first_ == true, "only the first CTA reduces partials");
  is_where_others_read(add.scratch);
  if (split_k_ == SplitK::stream_k) {
    diagnostics_.require(
        other_ == Other::there,
        "the peer CTA's partial may not be stored yet: a wait and then a barrier must precede the reduction");
    other_ = Other::added;
    return;
  }
  diagnostics_.require(part_ == Part::there,
                       "partials of other CTAs may not be stored yet: a cluster barrier must precede the reduction");
  part_ = Part::read;
}

void SplitKTiles::cluster_barrier(int elected) {
  diagnostics_.require((split_k_ == SplitK::cluster || multicast_) && elected == role_.threads() && !first_,
                       "not all threads of the cluster reach it");
  if (multicast_) return;
  diagnostics_.require(part_ != Part::there, "partials of the cluster's other CTAs are not reduced");
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
                       "{} is used before partials of other CTAs are reduced into it", name_of(plan_, value));
}

void SplitKTiles::end() const {
  diagnostics_.require(part_ == Part::none, "role {} ends while other CTAs may read its partial", role_.name);
}

void SplitKTiles::is_where_others_read(ScratchId id) const {
  diagnostics_.require(plan_.scratch[id].in_workspace == (split_k_ == SplitK::stream_k),
                       "other CTAs do not read partials from there");
}

}  // namespace tessera::internal::codegen
