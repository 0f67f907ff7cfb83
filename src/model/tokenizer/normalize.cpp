#include "model/tokenizer/normalize.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

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
std::string in_form(std::string_view text, UnicodeForm::Form form) {
  const bool composed = form == UnicodeForm::nfc || form == UnicodeForm::nfkc;
  const bool compatible = form == UnicodeForm::nfkc || form == UnicodeForm::nfkd;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (compatible ? UTF8PROC_COMPAT : 0));
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &result, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (size < 0) throw InternalError(std::string("utf8proc: ") + utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(result), static_cast<std::size_t>(size)};
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
