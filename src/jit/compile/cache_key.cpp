#include "jit/compile/cache_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || (c & 0x80) != 0; }

class Stripper {
 public:
  explicit Stripper(std::string_view source) : source_(source) {
    // Lines that end with a backslash are joined before everything else, as in the language.
    for (std::size_t i = 0; i < source.size(); ++i) {
      const std::size_t newline = source.substr(i + 1).starts_with("\r\n") ? i + 2 : i + 1;
      if (source[i] == '\\' && newline < source.size() && source[newline] == '\n') {
        i = newline;
        continue;
      }
      text_ += source[i];
      origin_.push_back(i);
    }
  }

  std::string run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
      if (c == '\n') {
        ++at_;
        end_line();
      } else if (std::isspace(static_cast<unsigned char>(c))) {
        ++at_;
        blank_ = true;
      } else if (c == '/' && next == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '/' && next == '*') {
        const std::size_t close = text_.find("*/", at_ + 2);
        at_ = close == text_.npos ? text_.size() : close + 2;
        blank_ = true;
      } else if (c == '"' || c == '\'') {
        literal(c);
      } else if (is_word(c) || (c == '.' && std::isdigit(static_cast<unsigned char>(next)))) {
        word();
      } else {
        put(at_, at_ + 1);
      }
    }
    end_line();
    return std::move(result_);
  }

 private:
  void put(std::size_t begin, std::size_t end) { put(std::string_view(text_).substr(begin, end - begin), end); }
  void put(std::string_view text, std::size_t end) {
    if (blank_ && !line_.empty()) line_ += ' ';
    blank_ = false;
    line_ += text;
    at_ = end;
  }

  void end_line() {
    blank_ = false;
    std::string_view directive = line_;
    if (directive.starts_with('#')) {
      directive.remove_prefix(directive.starts_with("# ") ? 2 : 1);
      const bool numbers = !directive.empty() && std::isdigit(static_cast<unsigned char>(directive[0]));
      const bool line = directive.starts_with("line") && (directive.size() == 4 || !is_word(directive[4]));
      if (numbers || line) line_.clear();
    }
    if (!line_.empty()) result_ += line_ + '\n';
    line_.clear();
  }

  /// A string or character literal, up to its closing quote or the end of the line.
  void literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    end = std::min(end, text_.size());
    put(at_, end < text_.size() && text_[end] == quote ? end + 1 : end);
  }

  /// An identifier, possibly the prefix of a literal, or a number, in which ' separates digits.
  void word() {
    const bool is_number = text_[at_] == '.' || std::isdigit(static_cast<unsigned char>(text_[at_]));
    std::size_t end = at_;
    while (end < text_.size()) {
      const char c = text_[end];
      const bool separator = is_number && c == '\'' && end + 1 < text_.size() && is_word(text_[end + 1]);
      if (!is_word(c) && !(is_number && c == '.') && !separator) break;
      ++end;
    }
    const std::string_view name = std::string_view(text_).substr(at_, end - at_);
    const bool raw = name == "R" || name == "LR" || name == "uR" || name == "UR" || name == "u8R";
    if (raw && end < text_.size() && text_[end] == '"') return raw_string(end);
    put(at_, end);
  }

  /// In a raw string no lines are joined: it is copied unchanged from the source.
  void raw_string(std::size_t quote) {
    const std::size_t begin = origin_[at_], open = source_.find('(', origin_[quote]);
    std::size_t end = source_.size();
    if (open != source_.npos) {
      const std::string close = fmt::format("){}\"", source_.substr(origin_[quote] + 1, open - origin_[quote] - 1));
      if (const std::size_t found = source_.find(close, open); found != source_.npos) end = found + close.size();
    }
    const auto next = std::lower_bound(origin_.begin(), origin_.end(), end);
    put(source_.substr(begin, end - begin), static_cast<std::size_t>(next - origin_.begin()));
  }

  std::string_view source_;
  std::string text_;                 // the source with continued lines joined
  std::vector<std::size_t> origin_;  // position of each character of text_ in source_
  std::size_t at_ = 0;
  std::string result_, line_;
  bool blank_ = false;  // was there white space since the last token?
};

}  // namespace

std::string strip_comments(std::string_view source) { return Stripper(source).run(); }

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

std::string CacheKey::hex() const {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace tessera::internal
