#include "codegen/plan/shared_tiles.hpp"

#include <utility>

namespace tessera::internal::codegen {

void SharedTiles::tiles(const TileLoop& loop) {
  findings_.require(loop.rounds.has_value() == (sharing_ == Sharing::grid),
                    "rounds of tiles are counted where no grid shares them, or are not where one does");
  tile_rounds = loop.rounds;
}

void SharedTiles::begin_tile() {
  cluster_barriers = 0;
  adds_up = tells_ = false;
  not_added_.clear();
}

void SharedTiles::end_tile() {
  if (sharing_ != Sharing::grid) return;
  findings_.about(nullptr);
  findings_.require(not_added_.empty() && adds_up == tells_, "role {} does not put sums, or does not add them up",
                    role_.name);
}

void SharedTiles::share(const ShareRounds& share) {
  findings_.require(sharing_ != Sharing::none, "there is nobody to share rounds");
  findings_.require(sharing_ != Sharing::grid || share.rounds == tile_rounds, "it is a share of other rounds");
  share_first_ = share.first;
  share_count_ = share.count;
}

void SharedTiles::loop(const Loop& loop) const {
  findings_.require(
      sharing_ == Sharing::none || (loop.count.kind == Operand::Kind::value && loop.count.value == share_count_),
      "each of the blocks that share them runs all rounds");
}

std::optional<bool> SharedTiles::enter(const OfPart& part, int elected) {
  findings_.require(sharing_ != Sharing::none && elected == role_.threads(), "there is no first block of several");
  findings_.require(part.share == (sharing_ == Sharing::grid ? share_first_ : ValueId{}),
                    "another number says which block is the first");
  return std::exchange(first_, part.first);
}

void SharedTiles::enter(const EachPart& each, int elected) {
  findings_.require(sharing_ == Sharing::grid && first_ == true && elected == role_.threads(),
                    "there are no other blocks of a tile");
  findings_.require(each.rounds == tile_rounds, "they are of other rounds");
  other_ = Other::unknown;
}

void SharedTiles::leave(const EachPart&) {
  findings_.require(other_ == Other::added, "what another block put is not added");
  other_ = Other::none;
  not_added_.clear();
  adds_up = true;
}

void SharedTiles::part(const PutPart& put) {
  findings_.require(first_ == false, "the first block adds up, and puts nothing");
  findings_.require(part_ == Part::none, "others may read what was put before");
  is_where_others_read(put.scratch);
  part_ = Part::put;
}

void SharedTiles::tell(int elected) {
  findings_.require(sharing_ == Sharing::grid && elected == 1 && first_ == false, "{} threads say that sums are there",
                    elected);
  findings_.require(part_ == Part::there, "sums may not all be put: a barrier stands before");
  part_ = Part::none;
  tells_ = true;
}

void SharedTiles::await(int elected) {
  findings_.require(elected == 1 && other_ == Other::unknown, "{} threads wait for another block's sums", elected);
  other_ = Other::awaited;
}

void SharedTiles::part(const AddParts& add) {
  findings_.require(first_ == true, "the first block alone adds up");
  is_where_others_read(add.scratch);
  if (sharing_ == Sharing::grid) {
    findings_.require(other_ == Other::there,
                      "sums of another block may not be there: a wait and then a barrier stand before");
    other_ = Other::added;
    return;
  }
  findings_.require(part_ == Part::there,
                    "sums that others put may not be there: a barrier of the cluster stands before");
  part_ = Part::read;
}

void SharedTiles::cluster_barrier(int elected) {
  findings_.require(sharing_ == Sharing::cluster && elected == role_.threads() && !first_,
                    "not all threads of the cluster come to it");
  findings_.require(part_ != Part::there, "what the cluster's other blocks put is not added");
  ++cluster_barriers;
  part_ = part_ == Part::put ? Part::there : Part::none;
}

void SharedTiles::met() {
  if (sharing_ == Sharing::grid && part_ == Part::put) part_ = Part::there;
  if (other_ == Other::awaited) other_ = Other::there;
}

void SharedTiles::multiply(ValueId sums) {
  if (sharing_ == Sharing::grid) not_added_.insert(plan_.values[sums].storage);
}

void SharedTiles::use(const Step& step, ValueId value) const {
  const bool of_parts = step.action.is<PutPart>() || step.action.is<AddParts>();
  findings_.require(of_parts || !not_added_.contains(plan_.values[value].storage),
                    "a part of {} is used, without what other blocks add to it", name_of(plan_, value));
}

void SharedTiles::end() const {
  findings_.require(part_ == Part::none, "role {} ends while others may read its sums", role_.name);
}

void SharedTiles::is_where_others_read(ScratchId id) const {
  findings_.require(plan_.scratch[id].in_workspace == (sharing_ == Sharing::grid), "other blocks do not read there");
}

}  // namespace tessera::internal::codegen
