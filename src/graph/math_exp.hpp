// f32: exponentials, logarithms, powers, hyperbolic and error functions, in addition to those of math.hpp.
#pragma once
#include <cmath>
#include <limits>

#include "graph/math_wide.hpp"

namespace tessera::internal::math {

namespace detail {
inline constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

/// A logarithm with its special cases: the argument x is infinite, `zero` (the logarithm is -inf), below that, or NaN.
inline float log_at_ends(float x, float zero, double inside) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float result = static_cast<float>(inside);
  result = x == infinity ? infinity : result;
  result = x == zero ? -infinity : result;
  return x < zero || x != x ? no_number : result;
}
}  // namespace detail

inline float expm1(float x) {
  const float y =
      static_cast<float>(wide::power_of_two(wide::clamp(static_cast<double>(x), -100, 100) * wide::log2e).less_one());
  return x == 0 || x != x ? x : y;
}
inline float log2(float x) { return detail::log_at_ends(x, 0, wide::log2(static_cast<double>(x))); }
inline float log10(float x) {
  return detail::log_at_ends(x, 0, wide::log2(static_cast<double>(x)) * 0.30102999566398119521);
}
/// Adds to the logarithm the part of x that 1 + x drops.
inline float log1p(float x) {
  const double a = static_cast<double>(x), sum = 1 + a, lost = a - (sum - 1);
  const float y = detail::log_at_ends(x, -1, wide::log2(sum) * wide::ln2 + lost / sum);
  return x == 0 ? x : y;
}

/// With e = e^
/// x
///  - 1, half of e + e / (e + 1).
inline float sinh(float x) {
  const double a = wide::clamp(std::fabs(static_cast<double>(x)), 0, 100);
  const double e = wide::power_of_two(a * wide::log2e).less_one();
  return std::copysign(static_cast<float>(0.5 * (e + e / (e + 1))), x);
}
inline float cosh(float x) {
  const double e = wide::exp2(wide::clamp(static_cast<double>(x), -100, 100) * wide::log2e);
  return static_cast<float>(0.5 * (e + 1 / e));
}

/// As in C: pow(x, 0) and pow(1, y) are 1, even for NaN.
inline float pow(float x, float y) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float a = std::fabs(x), half = 0.5f * y;
  const bool whole = std::trunc(y) == y, odd = whole & (std::trunc(half) != half);
  double log = wide::log2(static_cast<double>(a));
  log = a == 0 ? -static_cast<double>(infinity) : a == infinity ? static_cast<double>(infinity) : log;
  // 0 times an infinity counts as 0 here; a NaN stays a NaN
  const double exponent = a == 1 ? 0 : log * static_cast<double>(y);
  double size = wide::exp2(wide::clamp(exponent, -400, 400));
  size = size > 0x1p200 ? static_cast<double>(infinity) : size;
  float result = static_cast<float>(((a != a) | (y != y)) ? static_cast<double>(detail::no_number) : size);
  result = odd ? std::copysign(result, x) : result;
  result = ((x < 0) & (a != infinity) & !whole) ? detail::no_number : result;
  return ((x == 1) | (y == 0)) ? 1.0f : result;
}

/// Newton's method from a guess that divides the exponent by 3 (after FreeBSD's s_cbrtf.c), two steps, in double.
inline float cbrt(float x) {
  const float a = std::fabs(x);
  const bool subnormal = a < std::numeric_limits<float>::min();
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(subnormal ? a * 16777216.0f : a);
  const double guess = static_cast<double>(std::bit_cast<float>(bits / 3 + (subnormal ? 642849266u : 709958130u)));
  const double b = static_cast<double>(a);
  const auto better = [&](double t) {
    const double r = t * t * t;
    return t * (b + b + r) / (b + r + r);
  };
  const float y = std::copysign(static_cast<float>(better(better(guess))), x);
  return x == 0 || !(a <= std::numeric_limits<float>::max()) ? x : y;
}

namespace detail {
/// For
/// x
///  <= 0.75, by its series.
inline double erf_of_small(double x) {
  const double z = x * x;
  double p = 1.0 / 685440;
  p = p * z - 1.0 / 75600;
  p = p * z + 1.0 / 9360;
  p = p * z - 1.0 / 1320;
  p = p * z + 1.0 / 216;
  p = p * z - 1.0 / 42;
  p = p * z + 1.0 / 10;
  p = p * z - 1.0 / 3;
  p = p * z + 1.0;
  return p * x * 1.12837916709551257390;
}
/// For 0.5 <= x <= 11: e^-x^2 / (1 + 2x) times a factor near 1, which is a polynomial of (x - 3) / (x + 3).
inline double erfc_of_large(double x) {
  const double t = (x - 3) / (x + 3);
  double p = -0.00018892386428630628;
  p = p * t - 0.0006947906200296383;
  p = p * t + 0.001956855921972408;
  p = p * t + 0.0025079486636148548;
  p = p * t - 0.02378972064080255;
  p = p * t + 0.06831035489847732;
  p = p * t - 0.11927144661417274;
  p = p * t + 0.1296450553216078;
  p = p * t - 0.0475623843291434;
  p = p * t - 0.13562110470650734;
  p = p * t + 1.2530080588547243;
  return wide::exp2(-wide::log2e * x * x) * p / (1 + 2 * x);
}
}  // namespace detail

inline float erf(float x) {
  const double a = std::fabs(static_cast<double>(x)), near = wide::clamp(a, 0.5, 11);
  const double small = detail::erf_of_small(wide::clamp(a, 0, 0.75)), large = 1 - detail::erfc_of_large(near);
  return std::copysign(static_cast<float>(a < 0.75 ? small : large), x);
}
inline float erfc(float x) {
  const double a = std::fabs(static_cast<double>(x)), near = wide::clamp(a, 0.5, 11);
  const double large = detail::erfc_of_large(near), small = 1 - detail::erf_of_small(wide::clamp(a, 0, 0.75));
  const double positive = a < 0.75 ? small : large;
  return static_cast<float>(x < 0 ? 2 - positive : positive);
}

}  // namespace tessera::internal::math
