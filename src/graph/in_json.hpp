// Escapes text for JSON.
#pragma once
#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>

namespace tessera::internal {

/// A text as a JSON string (RFC 8259, "Strings"), with its quotes. A file name may contain any bytes.
inline std::string in_json(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result.append({'\\', c});
    else if (static_cast<unsigned char>(c) < 0x20)
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

}  // namespace tessera::internal
