#include "tessera/model/utf8.hpp"

#include <utility>

namespace tessera::internal {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8Sequence { valid, invalid, incomplete };

/// The kind and the length of the sequence that non-empty `bytes` begin with: a character, the longest prefix of one
/// (to be replaced as a whole), or a prefix that is cut off by the end of `bytes`.
std::pair<Utf8Sequence, std::size_t> first_sequence(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {Utf8Sequence::valid, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Sequence::invalid, 1};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Only the second byte has bounds of its own; they exclude overlong forms, surrogates and values above U+10FFFF.
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Utf8Sequence::incomplete, i};
    if (at(i) < low || at(i) > high) return {Utf8Sequence::invalid, i};
    low = 0x80, high = 0xBF;
  }
  return {Utf8Sequence::valid, length};
}

/// Appends the text at the beginning of `bytes` to `text`, and leaves an incomplete tail in `bytes`.
void append_text(std::string& text, std::string_view& bytes) {
  while (!bytes.empty()) {
    const auto [kind, length] = first_sequence(bytes);
    if (kind == Utf8Sequence::incomplete) return;
    text += kind == Utf8Sequence::valid ? bytes.substr(0, length) : replacement;
    bytes.remove_prefix(length);
  }
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto [kind, length] = first_sequence(bytes.substr(at));
    if (kind != Utf8Sequence::valid) return at;
    at += length;
  }
  return std::nullopt;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  append_text(text, bytes);
  if (!bytes.empty()) text += replacement;
  return text;
}

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  std::string text;
  std::string_view rest = held_;
  append_text(text, rest);
  held_ = std::string(rest);
  return text;
}

std::string Utf8Stream::finish() { return std::string(std::exchange(held_, {}).empty() ? "" : replacement); }

}  // namespace tessera::internal
