// Added tokens in a text, found before anything else.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/spec.hpp"
#include "model/tokenizer/text_pattern.hpp"

namespace tessera::internal {

class AddedMatcher {
 public:
  /// A token is searched as its `text`.
  explicit AddedMatcher(std::vector<AddedToken> tokens);

  /// Splits `text`, from left to right, at its leftmost tokens, the longest of those that begin at one place: calls
  /// `part(text)` for each part between them that is not empty, and `token(id)`.
  void split(std::string_view text, MatchMemory& memory, const std::function<void(std::string_view)>& part,
             const std::function<void(std::int32_t)>& token) const;

 private:
  /// The longest token that `text` begins with; null if there is none.
  const AddedToken* longest(std::string_view text) const;

  std::vector<AddedToken> tokens_;  // by text
  std::array<bool, 256> firsts_{};  // bytes that tokens begin with
};

}  // namespace tessera::internal
