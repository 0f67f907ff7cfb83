#include "model/tokenizer/merger.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace tessera::internal {

void Merger::merge(const MergeTable& merges, std::vector<std::int32_t>& ids) {
  const auto count = static_cast<std::int32_t>(symbols_.size());
  const auto symbol = [&](std::int32_t at) -> Symbol& { return symbols_[static_cast<std::size_t>(at)]; };
  const auto merge_at = [&](std::int32_t at) -> const MergeTable::Merge* {
    if (at < 0 || symbol(at).id < 0 || symbol(at).next == count) return nullptr;
    return merges.find(symbol(at).id, symbol(symbol(at).next).id);
  };
  const auto enqueue = [&](std::int32_t at) {
    const MergeTable::Merge* const merge = merge_at(at);
    if (merge) queue_.push_back(std::uint64_t{merge->rank} << 32 | static_cast<std::uint32_t>(at));
    return merge != nullptr;
  };
  for (std::int32_t at = 0; at < count; ++at) enqueue(at);
  std::make_heap(queue_.begin(), queue_.end(), std::greater<>());

  while (!queue_.empty()) {
    const std::uint64_t rank = queue_.front() >> 32;
    const auto at = static_cast<std::int32_t>(queue_.front() & 0xFFFFFFFF);
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    queue_.pop_back();

    // An entry is stale if either symbol has been merged since.
    const MergeTable::Merge* const merge = merge_at(at);
    if (!merge || merge->rank != rank) continue;
    const std::int32_t next = symbol(at).next;
    symbol(at).id = merge->result;
    symbol(at).next = symbol(next).next;
    symbol(next).id = -1;
    if (symbol(at).next != count) symbol(symbol(at).next).previous = at;
    for (const std::int32_t changed : {symbol(at).previous, at}) {
      if (enqueue(changed)) std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    }
  }
  for (std::int32_t at = 0; at != count; at = symbol(at).next) ids.push_back(symbol(at).id);
  symbols_.clear();
}

}  // namespace tessera::internal
