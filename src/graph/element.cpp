#include "graph/element.hpp"

#include <Eigen/Core>
#include <bit>

namespace tessera {

f16::f16(float value) : bits(Eigen::half_impl::float_to_half_rtne(value).x) {}
f16::operator float() const { return Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(bits)); }
bf16::bf16(float value) : bits(Eigen::bfloat16_impl::float_to_bfloat16_rtne<false>(value).value) {}
bf16::operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

float round_to_f16(float value) { return static_cast<float>(f16(value)); }
float round_to_bf16(float value) { return static_cast<float>(bf16(value)); }
float round_to_tf32(float value) {
  if (value != value) return std::bit_cast<float>(0x7fffe000u);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  return std::bit_cast<float>((bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u);
}

}  // namespace tessera
