// f32: trigonometric functions and their inverses, accurate for any number, however large.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "graph/math_wide.hpp"

namespace tessera::internal::math {

namespace detail {

/// An angle in [-pi/4, pi/4] after a number of quarter turns.
struct Turn {
  float angle;
  std::uint32_t quarters;
};

/// 96 of the bits of a number, `high` first.
struct Bits96 {
  std::uint32_t high, middle, low;
};
/// The bits of 2 / pi from position n on, n in [0, 128), where position 26 is the first after the binary point. (Payne
/// and Hanek, 1983.)
inline Bits96 two_over_pi_from(std::uint32_t n) {
  constexpr std::uint32_t w[] = {0x00000028, 0xbe60db93, 0x91054a7f, 0x09d5f47d, 0x4d377036, 0xd8a5664f, 0x10e4107f};
  const bool far = (n & 64) != 0, further = (n & 32) != 0;
  const std::uint32_t a0 = far ? w[2] : w[0], a1 = far ? w[3] : w[1], a2 = far ? w[4] : w[2], a3 = far ? w[5] : w[3],
                      a4 = far ? w[6] : w[4];
  const std::uint32_t b0 = further ? a1 : a0, b1 = further ? a2 : a1, b2 = further ? a3 : a2, b3 = further ? a4 : a3;
  const std::uint32_t left = n & 31, right = 31 - left;
  return {b0 << left | b1 >> 1 >> right, b1 << left | b2 >> 1 >> right, b2 << left | b3 >> 1 >> right};
}

/// For x >= 0. From 0.5 on, x 2 / pi modulo 4, exact to 2^-62, is computed as a product of integers: two bits are the
/// quarters, the rest, with a sign, is the angle. For an infinity or NaN the angle is NaN.
inline Turn turn_of(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), exponent = bits >> 23;
  const std::uint32_t mantissa = (bits & 0x7fffffu) | 0x800000u;
  const bool above_one = exponent > 126;
  const Bits96 factor = two_over_pi_from(above_one ? exponent - 127 : 0);
  const std::uint64_t m = above_one ? mantissa << 1 : mantissa;
  const std::uint64_t low = m * factor.low, middle = m * factor.middle + (low >> 32);
  const std::uint32_t p1 = static_cast<std::uint32_t>(m) * factor.high + static_cast<std::uint32_t>(middle >> 32);
  const std::uint32_t p0 = static_cast<std::uint32_t>(middle);
  // The angle in units of 2^-64 quarter turns: its upper 24 bits are exact as a float, the next 31 almost.
  const std::uint32_t s1 = p1 << 2 | p0 >> 30, s0 = p0 << 2;
  const float coarse = static_cast<float>(static_cast<std::int32_t>(s1) >> 8);
  const float fine = static_cast<float>(static_cast<std::int32_t>((s1 & 255u) << 23 | s0 >> 9));
  const float angle = (coarse + fine * 0x1p-31f) * 0x1.921fb6p-24f;
  const bool small = x < 0.5f;
  const float none = x - x;  // 0, or NaN
  return {small ? x : angle + none, small ? 0 : (p1 >> 30) + (p1 >> 29 & 1u)};
}

inline float sin_in_turn(float r) {
  const float z = r * r;
  float p = -1.9515295891e-4f;
  p = p * z + 8.3321608736e-3f;
  p = p * z - 1.6666654611e-1f;
  return p * z * r + r;
}
inline float cos_in_turn(float r) {
  const float z = r * r;
  float p = 2.443315711809948e-5f;
  p = p * z - 1.388731625493765e-3f;
  p = p * z + 4.166664568298827e-2f;
  return p * z * z - 0.5f * z + 1.0f;
}
inline float tan_in_turn(float r) {
  const float z = r * r;
  float p = 9.38540185543e-3f;
  p = p * z + 3.11992232697e-3f;
  p = p * z + 2.44301354525e-2f;
  p = p * z + 5.34112807005e-2f;
  p = p * z + 1.33387994085e-1f;
  p = p * z + 3.33331568548e-1f;
  return p * z * r + r;
}
inline float with_sign(float x, std::uint32_t sign) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ (sign & 0x80000000u));
}

}  // namespace detail

inline float sin(float x) {
  const detail::Turn turn = detail::turn_of(std::fabs(x));
  const float s = detail::sin_in_turn(turn.angle), c = detail::cos_in_turn(turn.angle);
  return detail::with_sign((turn.quarters & 1) != 0 ? c : s, std::bit_cast<std::uint32_t>(x) ^ turn.quarters << 30);
}
inline float cos(float x) {
  const detail::Turn turn = detail::turn_of(std::fabs(x));
  const float s = detail::sin_in_turn(turn.angle), c = detail::cos_in_turn(turn.angle);
  return detail::with_sign((turn.quarters & 1) != 0 ? s : c, (turn.quarters + 1) << 30);
}
inline float tan(float x) {
  const detail::Turn turn = detail::turn_of(std::fabs(x));
  const float t = detail::tan_in_turn(turn.angle);
  return detail::with_sign((turn.quarters & 1) != 0 ? 1.0f / -t : t, std::bit_cast<std::uint32_t>(x));
}

namespace wide {

/// atan of x >= 0, to a relative error of 1e-10.
inline double atan(double x) {
  constexpr double eighth = 0.41421356237309504880;  // tan(pi / 8)
  const bool large = x > 1 / eighth, middle = x > eighth;
  const double t = (large ? -1 : middle ? x - 1 : x) / (large ? x : middle ? x + 1 : 1);
  const double z = t * t;
  double p = 0.04705163836044703;
  p = p * z - 0.08455158486600185;
  p = p * z + 0.11040306933165601;
  p = p * z - 0.14281574100917466;
  p = p * z + 0.19999883328753007;
  p = p * z - 0.33333332090762097;
  p = p * z + 0.9999999999782574;
  return p * t + (large ? pi / 2 : middle ? pi / 4 : 0);
}

/// asin of
/// x
///  <= 0.5, to a relative error of 1e-10.
inline double asin(double x) {
  const double z = x * x;
  double p = 0.0347484248080839;
  p = p * z + 0.007401007239075378;
  p = p * z + 0.024650862660604088;
  p = p * z + 0.03010250689966149;
  p = p * z + 0.04466113930866896;
  p = p * z + 0.07499941908754719;
  p = p * z + 0.16666667364186447;
  p = p * z + 0.9999999999863537;
  return p * x;
}
/// acos of
/// x
///  in [0.5, 1]: pi/2 - asin
/// x
/// . NaN beyond 1.
inline double angle_from_one(double x) { return 2 * asin(std::sqrt(0.5 * (1 - x))); }

}  // namespace wide

inline float asin(float x) {
  const double a = std::fabs(static_cast<double>(x));
  return std::copysign(static_cast<float>(a <= 0.5 ? wide::asin(a) : wide::pi / 2 - wide::angle_from_one(a)), x);
}
inline float acos(float x) {
  const double b = static_cast<double>(x), a = std::fabs(b), far = wide::angle_from_one(a);
  return static_cast<float>(a <= 0.5 ? wide::pi / 2 - wide::asin(b) : b < 0 ? wide::pi - far : far);
}
inline float atan(float x) {
  return std::copysign(static_cast<float>(wide::atan(std::fabs(static_cast<double>(x)))), x);
}
/// As in C, including zeros and infinities.
inline float atan2(float y, float x) {
  const double a = std::fabs(static_cast<double>(y)), b = std::fabs(static_cast<double>(x));
  const double slope = a == b ? (a == 0 ? 0 : 1) : a / b;
  const double angle = wide::atan(slope), turned = std::signbit(x) ? wide::pi - angle : angle;
  return std::copysign(static_cast<float>(x != x || y != y ? static_cast<double>(x + y) : turned), y);
}

}  // namespace tessera::internal::math
