// Where a text ends: before the first of some texts, though it comes in parts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Lets a text through up to the first stop text. The first to be complete counts, of two complete at once the longer:
/// so the result is the same however the text was split.
class StopText {
 public:
  /// None is fine: then all text passes at once. Error if one is empty or no UTF-8, as it could never be met.
  explicit StopText(std::vector<std::string> stops);

  /// The text that is certain by now. Held back is the longest end that a stop text may begin with.
  std::string push(std::string_view text);
  /// What was held back, when no more text comes.
  std::string finish();
  /// Whether a stop text was met; nothing passes any more.
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace internal
}  // namespace tessera
