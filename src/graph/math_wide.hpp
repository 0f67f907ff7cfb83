// Powers and logarithms in double, to a relative error of 1e-10: the basis of f32 functions where float arithmetic
// would lose digits. Branch-free and limited to AVX2 instructions, so that loops vectorize.
#pragma once
#include <bit>
#include <cstdint>

namespace tessera::internal::math::wide {

inline constexpr double ln2 = 0.69314718055994530942, log2e = 1.4426950408889634074;
inline constexpr double pi = 3.14159265358979323846;

/// A NaN stays a NaN.
inline double clamp(double x, double low, double high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

/// 2^x is scale + scale * rest; `rest` has a relative error of 1e-10 even near 0.
struct Power {
  double scale, rest;
  double value() const { return scale + scale * rest; }
  double less_one() const { return scale * rest + (scale - 1); }
};

/// For
/// x
///  <= 1000. By the Taylor series of e^r - 1,
/// r
///  <= ln(2) / 2.
inline Power power_of_two(double x) {
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer held in the low bits
  const double t = x + magic;
  const double r = (x - (t - magic)) * ln2;
  double p = 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r * r + r;
  const std::uint64_t n = std::bit_cast<std::uint64_t>(t) - std::bit_cast<std::uint64_t>(magic);
  return {std::bit_cast<double>((n + 1023) << 52), p};
}
inline double exp2(double x) { return power_of_two(x).value(); }

/// For a normal number above 0. By the series of atanh.
inline double log2(double x) {
  constexpr double two_52 = 4503599627370496.0;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const double exponent = std::bit_cast<double>((bits >> 52) | std::bit_cast<std::uint64_t>(two_52)) - two_52;
  const double half = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3fe0000000000000u);  // in [0.5, 1)
  const bool low = half < 0.70710678118654752440;
  const double m = low ? half + half : half;
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1.0;
  return exponent - (low ? 1023.0 : 1022.0) + 2 * log2e * s * p;
}

}  // namespace tessera::internal::math::wide
