#include "tessera/model/draft_model.hpp"

#include <algorithm>
#include <array>

namespace tessera::internal {

DraftModel::DraftModel(const Gpt2& model, int capacity)
    : session_(model, 1, std::min(capacity, model.config().positions)) {}

std::vector<std::int32_t> DraftModel::draft(std::span<const std::int32_t> text, std::size_t count,
                                            const Sampling& sampling, std::int64_t stream) {
  const auto capacity = static_cast<std::size_t>(session_.capacity());
  if (text.size() > capacity) return {};
  count = std::min(count, capacity + 1 - text.size());  // the last token of a draft is not appended
  // The last token of the text is always appended, since its logits choose the first of the draft.
  const std::span<const std::int32_t> before = text.first(text.size() - 1);
  text_.resize(static_cast<std::size_t>(std::ranges::mismatch(text_, before).in1 - text_.begin()));
  session_.truncate(0, static_cast<int>(text_.size()));
  std::vector<std::int32_t> draft, next(text.begin() + static_cast<std::ptrdiff_t>(text_.size()), text.end());
  while (draft.size() < count) {
    session_.append(std::vector<std::vector<std::int32_t>>{next});
    text_.insert(text_.end(), next.begin(), next.end());
    next = session_.sample(sampling, std::array{stream});
    draft.push_back(next[0]);
  }
  return draft;
}

}  // namespace tessera::internal
