#include "tessera/graph/element.hpp"

#include <Eigen/Core>

#include "graph/math.hpp"

namespace tessera::internal {

f16::f16(float value) : bits(Eigen::half_impl::float_to_half_rtne(value).x) {}
f16::operator float() const { return Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(bits)); }
bf16::bf16(float value) : bits(math::bf16_bits(value)) {}
bf16::operator float() const { return math::bf16_value(bits); }
f8e4m3::f8e4m3(float value) : bits(math::f8e4m3_bits(value)) {}
f8e4m3::operator float() const { return math::f8e4m3_value(bits); }
f8e5m2::f8e5m2(float value) : bits(math::f8e5m2_bits(value)) {}
f8e5m2::operator float() const { return math::f8e5m2_value(bits); }

float round_to_f16(float value) { return static_cast<float>(f16(value)); }

}  // namespace tessera::internal
