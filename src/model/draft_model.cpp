#include "tessera/model/draft_model.hpp"

#include <algorithm>
#include <array>

namespace tessera::internal {

DraftModel::DraftModel(const Model& model, int capacity)
    : session_(model, 1, std::min(capacity, model.config().positions)),
      runs_ahead_(!model.device().shares_host_memory()) {}

void DraftModel::read(std::span<const std::int32_t> text) {
  if (text.empty() || text.size() > static_cast<std::size_t>(session_.capacity())) return;
  // The last token is appended by draft(), since its logits choose the first of the draft.
  const std::span<const std::int32_t> before = text.first(text.size() - 1);
  text_.resize(static_cast<std::size_t>(std::ranges::mismatch(text_, before).in1 - text_.begin()));
  session_.truncate(0, static_cast<int>(text_.size()));
  const std::vector<std::int32_t> missing(before.begin() + static_cast<std::ptrdiff_t>(text_.size()), before.end());
  if (missing.empty()) return;
  session_.append(std::array{missing});
  text_.insert(text_.end(), missing.begin(), missing.end());
}

std::vector<std::int32_t> DraftModel::draft(std::span<const std::int32_t> text, std::size_t count,
                                            const Sampling& sampling, std::int64_t stream) {
  const auto capacity = static_cast<std::size_t>(session_.capacity());
  if (text.empty() || text.size() > capacity) return {};
  read(text);
  count = std::min(count, capacity + 1 - text.size());  // the last token of a draft is not appended
  std::vector<std::int32_t> draft;
  std::int32_t next = text.back();
  while (draft.size() < count) {
    session_.append(std::array{std::vector{next}});
    text_.push_back(next);
    session_.run_ahead(runs_ahead_ && draft.size() + 1 < count);
    next = session_.sample(sampling, std::array{stream})[0];
    draft.push_back(next);
  }
  return draft;
}

}  // namespace tessera::internal
