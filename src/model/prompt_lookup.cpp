#include "tessera/model/prompt_lookup.hpp"

#include <algorithm>

namespace tessera::internal {

// A hash: a draft may be wrong.
std::uint64_t PromptLookup::key(std::size_t end, std::size_t tokens) const {
  std::uint64_t key = tokens;
  for (std::size_t i = end - tokens; i < end; ++i)
    key = (key ^ static_cast<std::uint32_t>(text_[i])) * 0x9E3779B97F4A7C15 + (key >> 29);
  return key;
}

void PromptLookup::read(std::span<const std::int32_t> text) {
  if (text.size() < text_.size() || !std::ranges::equal(text_, text.first(text_.size())))
    text_.clear(), behind_.clear();
  const std::size_t known = text_.size();
  text_.insert(text_.end(), text.begin() + static_cast<std::ptrdiff_t>(known), text.end());
  // No token follows the last ones yet.
  for (std::size_t end = std::max<std::size_t>(known, 1); end < text_.size(); ++end)
    for (std::size_t tokens = shortest; tokens <= std::min(longest, end); ++tokens) behind_[key(end, tokens)] = end;
}

std::vector<std::int32_t> PromptLookup::draft(std::size_t count) const {
  std::vector<std::int32_t> draft;
  for (std::size_t tokens = std::min(longest, text_.size()); tokens >= shortest && draft.empty(); --tokens) {
    const auto found = behind_.find(key(text_.size(), tokens));
    if (found == behind_.end()) continue;
    for (std::size_t at = found->second; draft.size() < count; ++at)
      draft.push_back(at < text_.size() ? text_[at] : draft[at - text_.size()]);
  }
  return draft;
}

}  // namespace tessera::internal
