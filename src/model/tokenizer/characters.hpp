// The characters of valid UTF-8.
#pragma once
#include <cstddef>
#include <string_view>

namespace tessera::internal {

/// The length of the character that `text`, which is not empty, begins with.
inline std::size_t first_character_size(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/// The length of the character that `text`, which is not empty, ends with.
inline std::size_t last_character_size(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[text.size() - size]) & 0xC0) == 0x80) ++size;
  return size;
}

}  // namespace tessera::internal
