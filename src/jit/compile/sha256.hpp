// SHA-256 (FIPS 180-4), which identifies texts and files; without a dependency on a library.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::internal {

using Digest = std::array<std::uint8_t, 32>;
Digest sha256(std::string_view bytes);
/// 64 hexadecimal digits.
std::string hex(const Digest& digest);

}  // namespace tessera::internal
