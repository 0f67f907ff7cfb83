#include "jit/compile/cache_key.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "codegen/prelude/tokens.hpp"

namespace tessera::internal {
namespace {

/// Collects tokens, without comments and line directives.
class Stripper {
 public:
  std::string run(std::string_view source) {
    Tokens tokens(source);
    while (const std::optional<Token> token = tokens.next()) add(*token);
    end_line();
    return std::move(result_);
  }

 private:
  void add(const Token& token) {
    switch (token.kind) {
      case Token::Kind::newline:
        return end_line();
      case Token::Kind::space:
      case Token::Kind::comment:
        blank_ = true;
        return;
      default:
        break;
    }
    if (blank_ && !line_.empty()) line_ += ' ';
    blank_ = false;
    if (token.kind == Token::Kind::raw_literal || token.text.find('\\') == token.text.npos)
      line_ += token.text;
    else
      line_ += join_lines(token.text);
  }

  void end_line() {
    blank_ = false;
    Tokens tokens(line_);
    const auto next = [&] { return tokens.next().value_or(Token{}); };
    if (next().text == "#") {
      Token directive = next();
      if (directive.kind == Token::Kind::space) directive = next();
      if (directive.kind == Token::Kind::number || directive.text == "line") line_.clear();
    }
    if (!line_.empty()) result_ += line_ + '\n';
    line_.clear();
  }

  std::string result_, line_;
  bool blank_ = false;  // was there white space since the last token?
};

}  // namespace

std::string strip_comments(std::string_view source) { return Stripper().run(source); }

CacheKey::CacheKey(const KeyFields& fields) {
  // Each field has its name and length in front, so that different lists of fields never give the same bytes.
  std::string text;
  const auto field = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{} {}:", name, value.size());
    text += value;
  };
  field("schema", std::to_string(cache_schema));
  field("compiler", fields.compiler);
  field("architecture", fields.architecture);
  field("flags", std::to_string(fields.flags.size()));
  for (const std::string& flag : fields.flags) field("flag", flag);
  field("line info", fields.line_info ? "1" : "0");
  field("source", fields.line_info ? std::string(fields.source) : strip_comments(fields.source));
  bytes = sha256(text);
}

std::string CacheKey::hex() const { return internal::hex(bytes); }

}  // namespace tessera::internal
