// Drafts of further tokens, from the text itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Guesses how a text goes on: as it did after the last three, or two, tokens where they occurred before (prompt
/// look-up decoding, Saxena, 2023). A draft is right where a text repeats itself, as code, summaries and answers about
/// a text do; Session::sample_all() verifies it.
class PromptLookup {
 public:
  /// Takes the whole text. Only tokens behind those of the last call are new, unless the text differs from it.
  void read(std::span<const std::int32_t> text);

  /// The `count` tokens that may follow; none if the last tokens did not occur before. Where the earlier text ends, the
  /// draft continues itself.
  std::vector<std::int32_t> draft(std::size_t count) const;

 private:
  static constexpr std::size_t longest = 3, shortest = 2;  // tokens that are looked up

  /// A number for the `tokens` tokens that end before `end`; other tokens have another one, almost always.
  std::uint64_t key(std::size_t end, std::size_t tokens) const;

  std::vector<std::int32_t> text_;
  std::unordered_map<std::uint64_t, std::size_t> behind_;  // of tokens: the position behind their last occurrence
};

}  // namespace internal
}  // namespace tessera
