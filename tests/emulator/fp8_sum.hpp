// Sums of fp8 products, as the tensor cores of sm_90 compute them.
#pragma once
#include <cstdint>
#include <span>

namespace tessera::internal::emulator {

/// An operand. Its exponent is that of its bits: 2.5 has 1; a subnormal has that of the smallest normal number.
struct Fp8 {
  float value = 0;
  int exponent = 0;
};

Fp8 f8e4m3_operand(std::uint32_t bits);
Fp8 f8e5m2_operand(std::uint32_t bits);

/// d + a[0] b[0] + a[1] b[1] + ..., where a wgmma sums 32 products. Its terms, which are d and the exact products, are
/// aligned to the largest exponent of those that are not 0, where a product's exponent is the sum of its operands'. Of
/// each term, 13 bits behind the point remain, of their sum 14 significant bits; others are cut off, not rounded.
///
/// No document specifies this (the DeepSeek-V3 report, section 3.3.2, observes about 14 bits). On an H100, it is the
/// result for 5 million random sums, bit by bit.
float fp8_sum(float d, std::span<const Fp8> a, std::span<const Fp8> b);

}  // namespace tessera::internal::emulator
