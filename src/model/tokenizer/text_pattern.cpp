#include "model/tokenizer/text_pattern.hpp"

#include <fmt/format.h>

#include <array>
#include <new>

#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"

#ifdef TESSERA_HAS_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

namespace tessera::internal {
namespace {

constexpr std::pair<std::size_t, std::size_t> nowhere{std::string_view::npos, std::string_view::npos};

#ifdef TESSERA_HAS_PCRE2
/// The pattern with `\s` spelled out, because that of PCRE2 also matches U+180E, which is not white space since Unicode
/// 6.3. Empty if Oniguruma would read the pattern differently: sets in sets, their intersection, and \h, a hex digit.
std::string for_pcre2(std::string_view pattern) {
  constexpr std::string_view white = R"(\p{Z}\x{09}-\x{0D}\x{85})";
  std::string result;
  bool in_set = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i], next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (c == '\\' && (next == 'h' || next == 'H')) return {};
    if (c == '\\' && next == 's') {
      result += in_set ? white : fmt::format("[{}]", white);
    } else if (c == '\\' && next == 'S' && !in_set) {
      result += fmt::format("[^{}]", white);
    } else if (c == '\\') {
      result.append(pattern.substr(i, 2));
    } else {
      if (in_set && (c == '[' || (c == '&' && next == '&'))) return {};
      result += c;
      if (c == '[') {
        in_set = true;
        if (next == '^') result += pattern[++i];
        if (pattern.substr(i + 1).starts_with(']')) result += pattern[++i];  // a member, not the end
      } else if (c == ']') {
        in_set = false;
      }
      continue;
    }
    ++i;
  }
  return result;
}
#endif

}  // namespace

#ifdef TESSERA_HAS_PCRE2

struct MatchMemory::Data {
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match{pcre2_match_data_create(1, nullptr),
                                                                            pcre2_match_data_free};
};
struct TextPattern::Code {
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code{nullptr, pcre2_code_free};
};

TextPattern::TextPattern(std::string_view pattern, bool literal, std::string_view place)
    : literal_(literal ? pattern : ""), place_(place) {
  if (pattern.empty()) throw Error(fmt::format("{}: a pattern is empty; remove it", place));
  if (literal) return;
  const std::string translated = for_pcre2(pattern);
  if (translated.empty())
    throw Error(fmt::format("{}: the pattern {} has a set within a set, && or \\h, which are not supported", place,
                            in_quotes(pattern)));
  code_ = std::make_unique<Code>();
  int error = 0;
  std::size_t at = 0;
  code_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr));
  if (!code_->code) {
    std::array<PCRE2_UCHAR, 256> why{};
    pcre2_get_error_message(error, why.data(), why.size());
    throw Error(fmt::format("{}: the pattern {} is not one of PCRE2: {}", place, in_quotes(pattern),
                            reinterpret_cast<const char*>(why.data())));
  }
  pcre2_jit_compile(code_->code.get(), PCRE2_JIT_COMPLETE);  // without JIT support, PCRE2 interprets the pattern
}

void TextPattern::require() const {}

std::pair<std::size_t, std::size_t> TextPattern::find(std::string_view text, std::size_t from,
                                                      MatchMemory& memory) const {
  if (!code_) {
    const std::size_t at = text.find(literal_, from);
    return at == text.npos ? nowhere : std::pair{at, at + literal_.size()};
  }
  pcre2_match_data* const match = memory.data_->match.get();
  if (!match) throw std::bad_alloc();
  const auto run = [&](std::uint32_t options) {
    return pcre2_match(code_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | options, match, nullptr);
  };
  int count = run(0);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = run(PCRE2_NO_JIT);
  if (count == PCRE2_ERROR_NOMATCH) return nowhere;
  if (count < 0)
    throw Error(
        fmt::format("{}: a pattern takes too many steps from byte {} of a part of the text on (PCRE2 returns {})",
                    place_, from, count));
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(match);
  return {ends[0], ends[1]};
}

#else

struct MatchMemory::Data {};
struct TextPattern::Code {};

TextPattern::TextPattern(std::string_view pattern, bool literal, std::string_view place)
    : literal_(literal ? pattern : ""), place_(place) {
  if (pattern.empty()) throw Error(fmt::format("{}: a pattern is empty; remove it", place));
}

void TextPattern::require() const {
  if (literal_.empty())
    throw Error(
        "this build has no PCRE2, so it cannot tokenize text; install libpcre2-dev and build again, or pass ids");
}

std::pair<std::size_t, std::size_t> TextPattern::find(std::string_view text, std::size_t from, MatchMemory&) const {
  require();
  const std::size_t at = text.find(literal_, from);
  return at == text.npos ? nowhere : std::pair{at, at + literal_.size()};
}

#endif

MatchMemory::MatchMemory() : data_(std::make_unique<Data>()) {}
MatchMemory::~MatchMemory() = default;
TextPattern::TextPattern(TextPattern&&) noexcept = default;
TextPattern::~TextPattern() = default;

}  // namespace tessera::internal
