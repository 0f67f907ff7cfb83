// Escapes text for generated source code.
#pragma once
#include <string>
#include <string_view>

namespace tessera::internal {

/// A text as it appears in a C++ string literal, without the quotes: one line of printable characters. It can also go
/// into a comment, unless it ends with a backslash.
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
