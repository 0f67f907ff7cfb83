// The tokens of C++ text, as far as Tessera must tell them apart: what is a comment, a literal or a name.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::internal {

/// A piece of C++ text. The pieces of a text make up the text, but for lines' continuations (a backslash and a newline)
/// between two pieces.
struct Token {
  enum class Kind : std::uint8_t {
    space,        ///< white space, without newlines
    newline,      ///< the end of a line
    comment,      ///< without the newline that ends it
    word,         ///< an identifier, a keyword, or the prefix of a literal
    number,       ///< with its suffix
    literal,      ///< a string or character, without prefix; it ends at the latest with its line
    raw_literal,  ///< a raw string, with its prefix
    other,        ///< one character
  };
  Kind kind{};
  std::string_view text{};  ///< as written: continuations are part of it
};

/// Reads a text token by token.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text), at_(past_continuations(0)) {}
  std::optional<Token> next();  ///< none at the end

 private:
  bool ended() const { return at_ == text_.size(); }
  char here() const { return ended() ? '\0' : text_[at_]; }
  char following() const;
  bool starts(char first, char second) const { return here() == first && following() == second; }
  void advance();
  std::size_t past_continuations(std::size_t at) const;

  Token::Kind skip();
  void skip_literal();
  Token::Kind skip_word();
  void skip_raw_literal();

  std::string_view text_;
  std::size_t at_;                   ///< the next character, which begins no continuation
  std::size_t begin_ = 0, end_ = 0;  ///< of the token
};

/// The text with each line that ends with a backslash joined to the next one.
std::string join_lines(std::string_view text);

}  // namespace tessera::internal
