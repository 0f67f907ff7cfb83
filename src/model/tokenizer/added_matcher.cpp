#include "model/tokenizer/added_matcher.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/tokenizer/characters.hpp"

namespace tessera::internal {
namespace {

bool is(const TextPattern& kind, std::string_view character, MatchMemory& memory) {
  return kind.find(character, 0, memory).first == 0;
}

/// Letters, digits and marks, as the \w of Rust's regular expressions.
const TextPattern& word() {
  static const TextPattern pattern(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}])", false, "single_word");
  return pattern;
}
const TextPattern& white() {
  static const TextPattern pattern(R"(\s)", false, "lstrip");
  return pattern;
}

}  // namespace

AddedMatcher::AddedMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.text.empty(); });
  std::ranges::stable_sort(tokens_, {}, &AddedToken::text);
  for (const AddedToken& token : tokens_) firsts_[static_cast<unsigned char>(token.text[0])] = true;
}

const AddedToken* AddedMatcher::longest(std::string_view text) const {
  const AddedToken* found = nullptr;
  auto begin = tokens_.begin(), end = tokens_.end();
  // [begin, end): the tokens that share the first `depth` bytes of the text. The first of them may be no longer.
  for (std::size_t depth = 0;; ++depth) {
    if (begin != end && begin->text.size() == depth) found = &*begin++;
    while (begin != end && begin->text.size() == depth) ++begin;
    if (begin == end || depth == text.size()) return found;
    const auto byte = [depth](const AddedToken& token) { return static_cast<unsigned char>(token.text[depth]); };
    const auto range = std::ranges::equal_range(begin, end, static_cast<unsigned char>(text[depth]), {}, byte);
    begin = range.begin(), end = range.end();
  }
}

void AddedMatcher::split(std::string_view text, MatchMemory& memory, const std::function<void(std::string_view)>& part,
                         const std::function<void(std::int32_t)>& token) const {
  std::size_t done = 0;  // of the text
  for (std::size_t at = 0; at < text.size() && !tokens_.empty();) {
    const AddedToken* const found = firsts_[static_cast<unsigned char>(text[at])] ? longest(text.substr(at)) : nullptr;
    if (!found) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + found->text.size();
    at = end;
    if (found->single_word) {
      const auto [before, after] = std::pair(text.substr(0, begin), text.substr(end));
      if (!before.empty() && is(word(), before.substr(begin - last_character_size(before)), memory)) continue;
      if (!after.empty() && is(word(), after.substr(0, first_character_size(after)), memory)) continue;
    }
    if (found->lstrip) {
      while (begin > done) {
        const std::size_t size = last_character_size(text.substr(0, begin));
        if (!is(white(), text.substr(begin - size, size), memory)) break;
        begin -= size;
      }
    }
    if (found->rstrip) {
      while (end < text.size()) {
        const std::size_t size = first_character_size(text.substr(end));
        if (!is(white(), text.substr(end, size), memory)) break;
        end += size;
      }
    }
    if (done < begin) part(text.substr(done, begin - done));
    token(found->id);
    done = end;
  }
  if (done < text.size()) part(text.substr(done));
}

}  // namespace tessera::internal
