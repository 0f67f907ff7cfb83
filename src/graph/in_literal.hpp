// Text that becomes part of a source.
#pragma once
#include <string>
#include <string_view>

namespace tessera::internal {

/// A text as it stands in a string literal of C++, without the quotes: one line of printable characters, which a comment
/// may have, too, but for a backslash at its end.
inline std::string in_literal(std::string_view text) {
  std::string literal;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) {
      (literal += '\\') += {static_cast<char>('0' + code / 64), static_cast<char>('0' + code / 8 % 8),
                            static_cast<char>('0' + code % 8)};
      continue;
    }
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal;
}

}  // namespace tessera::internal
