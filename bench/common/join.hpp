// Joins texts and numbers.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tessera::internal::bench {

/// "1x2x3" from 1, 2, 3 and "x". (GCC 12 emits a spurious warning for fmt::join.)
std::string join(const auto& items, std::string_view separator) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    text += fmt::format("{}", item);
  }
  return text;
}

}  // namespace tessera::internal::bench
