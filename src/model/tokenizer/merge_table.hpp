// Which two tokens become one, and in which order.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::internal {

/// A hash table of pairs of tokens, with open addressing: every neighboring pair of a text is looked up in it.
class MergeTable {
 public:
  struct Merge {
    std::int32_t left, right;
    std::int32_t result = -1;  ///< -1: an empty slot
    std::uint32_t rank = 0;    ///< lower ones first; among equal ranks, the leftmost pair of a piece first
  };

  void reserve(std::size_t count) {
    if (count * 2 > slots_.size()) grow(std::bit_ceil(count * 2));
  }
  /// False, and nothing is added, if the pair has a merge already. Ids are not negative.
  bool add(const Merge& merge) {
    reserve(count_ + 1);
    Merge& slot = slots_[slot_of(merge.left, merge.right)];
    if (slot.result >= 0) return false;
    slot = merge, ++count_;
    return true;
  }
  /// Null if the pair has none.
  const Merge* find(std::int32_t left, std::int32_t right) const {
    if (slots_.empty()) return nullptr;
    const Merge& slot = slots_[slot_of(left, right)];
    return slot.result < 0 ? nullptr : &slot;
  }
  std::size_t size() const { return count_; }

 private:
  /// The slot of the pair, or the empty one where it belongs. At most half of the slots are taken.
  std::size_t slot_of(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask;
    while (slots_[at].result >= 0 && (slots_[at].left != left || slots_[at].right != right)) at = (at + 1) & mask;
    return at;
  }
  void grow(std::size_t size) {
    std::vector<Merge> old(size, Merge{0, 0});
    old.swap(slots_);
    for (const Merge& merge : old)
      if (merge.result >= 0) slots_[slot_of(merge.left, merge.right)] = merge;
  }

  std::vector<Merge> slots_;
  std::size_t count_ = 0;
};

}  // namespace tessera::internal
