#include "model/tokenizer/byte_alphabet.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera::internal {
namespace {

constexpr std::array<std::uint16_t, 256> byte_letters = [] {
  std::array<std::uint16_t, 256> letters{};
  std::uint16_t next = 0x100;
  for (std::uint16_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    letters[byte] = printable ? byte : next++;
  }
  return letters;
}();

}  // namespace

std::string spell(std::string_view bytes) {
  std::string spelled;
  for (const char byte : bytes) {
    const std::uint16_t letter = byte_letters[static_cast<unsigned char>(byte)];
    if (letter >= 0x80) spelled += static_cast<char>(0xC0 | letter >> 6);
    spelled += static_cast<char>(letter < 0x80 ? letter : 0x80 | (letter & 0x3F));
  }
  return spelled;
}

std::optional<std::string> unspell(std::string_view spelled) {
  static const auto bytes = [] {
    std::array<std::int16_t, 0x800> inverse;
    inverse.fill(-1);
    for (std::int16_t byte = 0; byte < 256; ++byte) inverse[byte_letters[static_cast<std::size_t>(byte)]] = byte;
    return inverse;
  }();
  std::string result;
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    std::size_t letter = static_cast<unsigned char>(spelled[i]);
    if (letter >= 0xE0 || (letter >= 0x80 && i + 1 == spelled.size())) return std::nullopt;
    if (letter >= 0x80) letter = (letter & 0x1F) << 6 | (static_cast<unsigned char>(spelled[++i]) & 0x3F);
    if (bytes[letter] < 0) return std::nullopt;
    result += static_cast<char>(bytes[letter]);
  }
  return result;
}

}  // namespace tessera::internal
