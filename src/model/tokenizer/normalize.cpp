#include "model/tokenizer/normalize.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "tessera/graph/error.hpp"

#ifdef TESSERA_HAS_UTF8PROC
#include <utf8proc.h>
#endif

namespace tessera::internal {
namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

#ifdef TESSERA_HAS_UTF8PROC
/// As utf8proc_map, which orders marks in a time that is quadratic in their number behind a character.
std::string in_form(std::string_view text, UnicodeForm::Form form) {
  const bool composed = form == UnicodeForm::nfc || form == UnicodeForm::nfkc;
  const bool compatible = form == UnicodeForm::nfkc || form == UnicodeForm::nfkd;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (compatible ? UTF8PROC_COMPAT : 0));
  const auto checked = [](utf8proc_ssize_t result) {
    if (result < 0) throw InternalError(std::string("utf8proc: ") + utf8proc_errmsg(result));
    return static_cast<std::size_t>(result);
  };
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    text.remove_prefix(checked(utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                static_cast<utf8proc_ssize_t>(text.size()), &code)));
    std::array<utf8proc_int32_t, 32> parts{};  // the longest decomposition of Unicode has 18
    int boundary = 0;
    const std::size_t count = checked(utf8proc_decompose_char(code, parts.data(), parts.size(), options, &boundary));
    codes.insert(codes.end(), parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
  }
  const auto order = [](utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; };
  const auto is_mark = [&](utf8proc_int32_t code) { return order(code) != 0; };
  for (auto at = codes.begin(); at != codes.end();) {
    const auto begin = std::find_if(at, codes.end(), is_mark);
    at = std::find_if_not(begin, codes.end(), is_mark);
    std::ranges::stable_sort(begin, at, {}, order);
  }
  if (composed)
    codes.resize(checked(utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), options)));
  std::string result;
  for (const utf8proc_int32_t code : codes) {
    std::array<utf8proc_uint8_t, 4> bytes{};
    result.append(reinterpret_cast<const char*>(bytes.data()), checked(utf8proc_encode_char(code, bytes.data())));
  }
  return result;
}
#else
std::string in_form(std::string_view, UnicodeForm::Form) {
  throw Error(
      "this build has no utf8proc, and this tokenizer normalizes characters beyond ASCII; install libutf8proc-dev and "
      "build again, or pass ids");
}
#endif

}  // namespace

std::string with_replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at; (at = text.find(from)) != text.npos; text.remove_prefix(at + from.size()))
    result.append(text.substr(0, at)).append(to);
  return result.append(text);
}

std::string_view normalized(std::string_view text, std::span<const NormalizerStep> steps, bool continues,
                            std::string& memory) {
  for (const NormalizerStep& step : steps) {
    if (const auto* unicode = std::get_if<UnicodeForm>(&step)) {
      if (is_ascii(text)) continue;
      memory = in_form(text, unicode->form);
    } else if (const auto* prepend = std::get_if<Prepend>(&step)) {
      if (text.empty() || continues) continue;
      memory = prepend->text + std::string(text);
    } else if (const auto* replace = std::get_if<Replace>(&step)) {
      memory = with_replaced(text, replace->from, replace->to);
    }
    text = memory;
  }
  return text;
}

}  // namespace tessera::internal
