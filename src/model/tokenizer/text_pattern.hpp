// Patterns that cut texts: PCRE2, with the white space of Unicode.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::internal {

/// The working memory of matching, for one thread.
class MatchMemory {
 public:
  MatchMemory();
  ~MatchMemory();
  MatchMemory(const MatchMemory&) = delete;
  MatchMemory& operator=(const MatchMemory&) = delete;

 private:
  friend class TextPattern;
  struct Data;
  std::unique_ptr<Data> data_;
};

/// A compiled pattern, or a literal text. Several threads may use one.
class TextPattern {
 public:
  /// Throws Error that begins with `place` if PCRE2 rejects the pattern, or if PCRE2 and Oniguruma, which Hugging
  /// Face's tokenizers use, would read it differently.
  TextPattern(std::string_view pattern, bool literal, std::string_view place);
  TextPattern(TextPattern&&) noexcept;
  ~TextPattern();

  /// The first match in `text`, which is UTF-8, that begins at `from` or later and is not empty; {npos, npos} if there
  /// is none. Throws Error if matching takes too many steps, or if this build has no PCRE2.
  std::pair<std::size_t, std::size_t> find(std::string_view text, std::size_t from, MatchMemory& memory) const;

  /// Throws Error if the pattern cannot be used because this build has no PCRE2.
  void require() const;

 private:
  struct Code;
  std::string literal_;  // empty: a pattern
  std::string place_;
  std::unique_ptr<Code> code_;
};

}  // namespace tessera::internal
