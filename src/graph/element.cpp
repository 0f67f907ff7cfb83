#include "tessera/graph/element.hpp"

#include <Eigen/Core>

#include "graph/math.hpp"

namespace tessera::internal {

std::uint16_t math::f16_bits(float x) { return Eigen::half_impl::float_to_half_rtne(x).x; }
float math::f16_value(std::uint16_t bits) {
  return Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(bits));
}

// The types that are only stored are structs of their bits.
#define NARROW_FLOAT(name, ...)                               \
  name::name(float value) : bits(math::name##_bits(value)) {} \
  name::operator float() const { return math::name##_value(bits); }
#define TYPE(...)
#include "tessera/graph/types.def"

float round_to_f16(float value) { return static_cast<float>(f16(value)); }

}  // namespace tessera::internal
