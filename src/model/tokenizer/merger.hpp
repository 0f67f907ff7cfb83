// Byte-pair encoding: the merges of a piece.
#pragma once
#include <cstdint>
#include <vector>

#include "model/tokenizer/merge_table.hpp"

namespace tessera::internal {

/// The working memory of merging, reused from piece to piece.
class Merger {
 public:
  /// Appends a symbol, a token, to the piece.
  void add(std::int32_t id) {
    const auto at = static_cast<std::int32_t>(symbols_.size());
    symbols_.push_back({id, at - 1, at + 1});
  }
  /// Merges the pair of neighbors with the lowest rank, the leftmost among equals, until no pair has a merge; appends
  /// the symbols that are left to `ids`, and begins another piece. Time O(n log n).
  void merge(const MergeTable& merges, std::vector<std::int32_t>& ids);

 private:
  struct Symbol {
    std::int32_t id;  // -1 once it has been merged into its left neighbor
    std::int32_t previous, next;
  };
  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> queue_;  // a min-heap of (rank << 32 | position of the left symbol)
};

}  // namespace tessera::internal
