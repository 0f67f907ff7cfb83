#include "codegen/prelude/tokens.hpp"

#include <algorithm>
#include <cctype>

namespace tessera::internal {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || (c & 0x80) != 0;
}

/// The characters of a line's continuation at `at`; 0 if there is none.
std::size_t continuation(std::string_view text, std::size_t at) {
  text.remove_prefix(at);
  return text.starts_with("\\\n") ? 2 : text.starts_with("\\\r\n") ? 3 : 0;
}

}  // namespace

std::string join_lines(std::string_view text) {
  std::string joined;
  for (std::size_t at = 0; at < text.size(); ++at) {
    while (const std::size_t length = continuation(text, at)) at += length;
    if (at < text.size()) joined += text[at];
  }
  return joined;
}

std::size_t Tokens::past_continuations(std::size_t at) const {
  while (const std::size_t length = at < text_.size() ? continuation(text_, at) : 0) at += length;
  return at;
}

char Tokens::following() const {
  const std::size_t at = past_continuations(at_ + 1);
  return at < text_.size() ? text_[at] : '\0';
}

void Tokens::advance() {
  if (ended()) return;
  end_ = at_ + 1;
  at_ = past_continuations(end_);
}

std::optional<Token> Tokens::next() {
  if (ended()) return {};
  begin_ = at_;
  const Token::Kind kind = skip();
  return Token{kind, text_.substr(begin_, end_ - begin_)};
}

Token::Kind Tokens::skip() {
  const char c = here();
  if (c == '\n') {
    advance();
    return Token::Kind::newline;
  }
  if (is_space(c)) {
    while (here() != '\n' && is_space(here())) advance();
    return Token::Kind::space;
  }
  if (starts('/', '/')) {
    while (!ended() && here() != '\n') advance();
    return Token::Kind::comment;
  }
  if (starts('/', '*')) {
    advance();
    advance();
    while (!ended() && !starts('*', '/')) advance();
    advance();
    advance();
    return Token::Kind::comment;
  }
  if (c == '"' || c == '\'') {
    skip_literal();
    return Token::Kind::literal;
  }
  if (is_word(c) || (c == '.' && is_digit(following()))) return skip_word();
  advance();
  return Token::Kind::other;
}

void Tokens::skip_literal() {
  const char quote = here();
  advance();
  while (!ended() && here() != quote && here() != '\n') {
    if (here() == '\\') advance();
    advance();
  }
  if (here() == quote) advance();
}

Token::Kind Tokens::skip_word() {
  const bool number = here() == '.' || is_digit(here());
  char last = '\0';
  const auto continues = [&](char c) {
    if (is_word(c)) return true;
    if (!number) return false;
    if (c == '+' || c == '-') return last == 'e' || last == 'E' || last == 'p' || last == 'P';
    return c == '.' || (c == '\'' && is_word(following()));
  };
  while (!ended() && continues(here())) {
    last = here();
    advance();
  }
  if (number) return Token::Kind::number;
  if (last != 'R' || here() != '"') return Token::Kind::word;
  const std::string prefix = join_lines(text_.substr(begin_, end_ - begin_));
  if (prefix != "R" && prefix != "LR" && prefix != "uR" && prefix != "UR" && prefix != "u8R") return Token::Kind::word;
  skip_raw_literal();
  return Token::Kind::raw_literal;
}

// No lines are joined in it.
void Tokens::skip_raw_literal() {
  const std::size_t quote = at_, open = text_.find('(', quote);
  end_ = text_.size();
  if (open != text_.npos) {
    const std::string close = ")" + std::string(text_.substr(quote + 1, open - quote - 1)) + "\"";
    if (const std::size_t found = text_.find(close, open); found != text_.npos) end_ = found + close.size();
  }
  at_ = past_continuations(end_);
}

}  // namespace tessera::internal
