// Conversions of the operands of matrix instructions.
#pragma once
#include <bit>
#include <cstdint>

namespace tessera::internal::emulator {

inline float f16_operand(std::uint32_t bits) {
  bits &= 0xffff;
  const float magnitude = std::bit_cast<float>((bits & 0x7fff) << 13) * 0x1p112f;
  const float value = magnitude >= 0x1p16f ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | 0x7f800000)
                                           : magnitude;  // infinities and NaNs have the highest exponent
  return bits & 0x8000 ? -value : value;
}

inline float bf16_operand(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

inline float tf32_operand(std::uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000); }

// Integers, in the unsigned type in which their accumulators wrap.
inline std::uint32_t i8_operand(std::uint32_t bits) {
  return static_cast<std::uint32_t>(static_cast<std::int8_t>(bits));
}

inline std::uint32_t u8_operand(std::uint32_t bits) { return bits & 0xff; }

}  // namespace tessera::internal::emulator
