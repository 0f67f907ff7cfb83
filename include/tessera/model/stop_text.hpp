// Ends a text before the first of several stop texts, even if the text arrives in parts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Passes a text up to the first stop text. The first one to be complete counts; if two become complete at once, the
/// longer. So the result does not depend on how the text was split.
class StopText {
 public:
  /// With no stop texts, all text passes at once. Error if a stop text is empty or not UTF-8, as it could never match.
  explicit StopText(std::vector<std::string> stops);

  /// The text that is certain so far. The longest suffix that may begin a stop text is held back.
  std::string push(std::string_view text);
  /// The text held back, when no more text comes.
  std::string finish();
  /// Whether a stop text was found; no text passes after that.
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace internal
}  // namespace tessera
