#include "emulator/fp8_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>

#include "emulator/operands.hpp"

namespace tessera::internal::emulator {
namespace {

constexpr int kept_fraction = 13;
constexpr int lowest_of_f32 = std::numeric_limits<float>::min_exponent - 1;

}  // namespace

Fp8 f8e4m3_operand(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7f;
  const float size = std::bit_cast<float>(magnitude == 0x7f ? 0x7fc00000 : magnitude << 20) * 0x1p120f;
  return {.value = bits & 0x80 ? -size : size, .exponent = std::max(static_cast<int>(magnitude >> 3), 1) - 7};
}

Fp8 f8e5m2_operand(std::uint32_t bits) {  // the upper half of an f16
  return {.value = f16_operand(bits << 8), .exponent = std::max(static_cast<int>(bits >> 2 & 0x1f), 1) - 15};
}

float fp8_sum(float d, std::span<const Fp8> a, std::span<const Fp8> b) {
  double plain = d;
  int top = std::max(std::ilogb(d), lowest_of_f32);  // subnormals have the lowest exponent, and 0 a lower one
  for (std::size_t k = 0; k < a.size(); ++k) {
    const float product = a[k].value * b[k].value;
    plain += double{product};
    if (product != 0) top = std::max(top, a[k].exponent + b[k].exponent);
  }
  if (std::isnan(plain)) return std::bit_cast<float>(0x7fffffff);
  if (std::isinf(plain)) return static_cast<float>(plain);

  const double scale = std::ldexp(1.0, kept_fraction - top);
  const auto cut = [&](float term) { return static_cast<int>(double{term} * scale); };
  int sum = cut(d);
  for (std::size_t k = 0; k < a.size(); ++k) sum += cut(a[k].value * b[k].value);
  const auto size = static_cast<unsigned>(std::abs(sum));
  const int dropped = std::max(static_cast<int>(std::bit_width(size)) - (kept_fraction + 1), 0);
  const double kept = std::ldexp(static_cast<double>(size >> dropped << dropped), top - kept_fraction);
  return static_cast<float>(sum < 0 ? -kept : kept);
}

}  // namespace tessera::internal::emulator
