// The scalar functions behind ops.def: branch-free and inline, so that loops over them vectorize. They define each op
// wherever it is evaluated. Floating-point functions are within 2 ulp of the exact value over their domain.
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tessera/graph/element.hpp"

namespace tessera::internal::math {

// Polynomials and range reductions after Cephes (Moshier, 1989), coefficients for binary32.

namespace detail {
inline constexpr float round_magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer held in the low bits

inline float power_of_two(std::int32_t n) { return std::bit_cast<float>((n + 127) << 23); }
// value * 2^n in two steps, so that subnormal results and overflow to infinity are correct.
inline float scale(float value, std::int32_t n) {
  const std::int32_t half = n >> 1;
  return value * power_of_two(half) * power_of_two(n - half);
}
inline float clamp(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
}  // namespace detail

inline float exp(float x) {
  const float y = detail::clamp(x, -104.0f, 89.0f);
  const float t = y * 1.44269504088896341f + detail::round_magic;
  const float n = t - detail::round_magic;
  float r = y - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const std::int32_t k = std::bit_cast<std::int32_t>(t) - std::bit_cast<std::int32_t>(detail::round_magic);
  const float result = detail::scale(p, x != x ? 0 : k);
  return x != x ? x : result;
}

inline float exp2(float x) {
  const float y = detail::clamp(x, -151.0f, 129.0f);
  const float t = y + detail::round_magic;
  const float n = t - detail::round_magic;
  const float r = y - n;
  float p = 1.535336188319500e-4f;
  p = p * r + 1.339887440266574e-3f;
  p = p * r + 9.618437357674640e-3f;
  p = p * r + 5.550332471162809e-2f;
  p = p * r + 2.402264791363012e-1f;
  p = p * r + 6.931472028550421e-1f;
  p = p * r + 1.0f;
  const std::int32_t k = std::bit_cast<std::int32_t>(t) - std::bit_cast<std::int32_t>(detail::round_magic);
  const float result = detail::scale(p, x != x ? 0 : k);
  return x != x ? x : result;
}

inline float log(float x) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const bool subnormal = x < std::numeric_limits<float>::min();
  const float y = subnormal ? x * 8388608.0f : x;
  const std::int32_t bits = std::bit_cast<std::int32_t>(y);
  std::int32_t e = ((bits >> 23) & 0xff) - 126 - (subnormal ? 23 : 0);
  float m = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);  // in [0.5, 1)
  const bool low = m < 0.707106781186547524f;
  e = low ? e - 1 : e;
  m = low ? m + m - 1.0f : m - 1.0f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float n = static_cast<float>(e);
  float result = p * m * z;
  result = result + n * -2.12194440e-4f;
  result = result - 0.5f * z;
  result = m + result;
  result = result + n * 0.693359375f;
  result = x == infinity ? infinity : result;
  result = x == 0.0f ? -infinity : result;
  return x < 0.0f || x != x ? std::numeric_limits<float>::quiet_NaN() : result;
}

inline float tanh(float x) {
  const float a = x < 0.0f ? -x : x;
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = p * z * x + x;
  const float e = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  const float large = x < 0.0f ? -e : e;
  return a < 0.625f ? small : large;
}

inline float sigmoid2(float x) { return 1.0f / (1.0f + exp2(-x)); }

inline float fma(float a, float b, float c) { return std::fma(a, b, c); }
inline float sqrt(float x) { return std::sqrt(x); }
inline float rsqrt(float x) { return 1.0f / std::sqrt(x); }

// Integers wrap: computed unsigned, where overflow is defined.
template <class T>
struct Unsigned {
  using type = T;
};
template <std::signed_integral T>
struct Unsigned<T> {
  using type = std::make_unsigned_t<T>;
};
template <class T>
using unsigned_t = typename Unsigned<T>::type;

template <class T>
T add(T a, T b) {
  return static_cast<T>(static_cast<unsigned_t<T>>(a) + static_cast<unsigned_t<T>>(b));
}
template <class T>
T sub(T a, T b) {
  return static_cast<T>(static_cast<unsigned_t<T>>(a) - static_cast<unsigned_t<T>>(b));
}
template <class T>
T mul(T a, T b) {
  return static_cast<T>(static_cast<unsigned_t<T>>(a) * static_cast<unsigned_t<T>>(b));
}
template <class T>
T neg(T a) {
  return static_cast<T>(-static_cast<unsigned_t<T>>(a));
}
template <std::signed_integral T>
T abs(T a) {
  return a < T(0) ? neg(a) : a;
}
template <std::unsigned_integral T>
T abs(T a) {
  return a;
}
template <std::floating_point T>
T abs(T a) {
  return std::fabs(a);
}

// As in Python: rounds down, the remainder has the divisor's sign. x // 0 and x % 0 are 0; min // -1 wraps to min.
template <class T>
T floor_div(T a, T b) {
  const T divisor = b == T(0) || b == T(-1) ? T(1) : b;
  const T quotient = static_cast<T>(a / divisor);
  const T remainder = static_cast<T>(a - quotient * divisor);
  const T floor = static_cast<T>(quotient - (remainder != 0 && (remainder < 0) != (divisor < 0) ? 1 : 0));
  return b == T(0) ? T(0) : b == T(-1) ? neg(a) : floor;
}
template <class T>
T modulo(T a, T b) {
  return b == T(0) ? T(0) : sub(a, mul(floor_div(a, b), b));
}
template <std::unsigned_integral T>
T floor_div(T a, T b) {
  return b == T(0) ? T(0) : a / (b == T(0) ? T(1) : b);
}
template <std::unsigned_integral T>
T modulo(T a, T b) {
  return b == T(0) ? T(0) : a % (b == T(0) ? T(1) : b);
}
// Rounds up: exact up to the largest a, where a + (b - 1) would wrap.
template <std::unsigned_integral T>
T cdiv(T a, T b) {
  return floor_div(a, b) + (modulo(a, b) != T(0) ? T(1) : T(0));
}
template <class T>
T cdiv(T a, T b) {
  return neg(floor_div(neg(a), b));
}

// Do they have the same bits in memory? For floating-point numbers this differs from equality.
template <class T>
bool has_same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// A NaN loses against a number: IEEE 754-2019 minimumNumber and maximumNumber; the order of zeros is unspecified.
template <class T>
T minimum(T a, T b) {
  return a < b || b != b ? a : b;
}
template <class T>
T maximum(T a, T b) {
  return a > b || b != b ? a : b;
}
// A NaN wins: IEEE 754-2019 minimum and maximum.
template <class T>
T minimum_nan(T a, T b) {
  return a < b || a != a ? a : b;
}
template <class T>
T maximum_nan(T a, T b) {
  return a > b || a != a ? a : b;
}

// Word `index` of the Philox 4x32-10 stream of `key` (Salmon et al., SC'11): word index % 4 of the block with counter
// index / 4, both as unsigned 64-bit numbers.
inline std::int32_t random_bits(std::int64_t key, std::int64_t index) {
  const auto position = static_cast<std::uint64_t>(index);
  const std::uint64_t block = position >> 2;
  std::uint32_t c0 = static_cast<std::uint32_t>(block), c1 = static_cast<std::uint32_t>(block >> 32), c2 = 0, c3 = 0;
  std::uint32_t k0 = static_cast<std::uint32_t>(static_cast<std::uint64_t>(key));
  std::uint32_t k1 = static_cast<std::uint32_t>(static_cast<std::uint64_t>(key) >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const std::uint32_t low = position & 1 ? c1 : c0, high = position & 1 ? c3 : c2;
  return static_cast<std::int32_t>(position & 2 ? high : low);
}
// Uniform in (0, 1), never 0 or 1: the upper 23 bits, at the middle of their interval.
inline float random_uniform(std::int64_t key, std::int64_t index) {
  const auto bits = static_cast<std::uint32_t>(random_bits(key, index)) >> 9;
  return (static_cast<float>(static_cast<std::int32_t>(bits)) + 0.5f) * 1.1920928955078125e-7f;
}

// Narrow floating-point types, as the stored bits or as a float of the same value. Rounding is to nearest even.
inline std::uint16_t bf16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>(x != x ? (bits >> 16) | 0x40u : rounded);
}
inline float bf16_value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
inline float round_to_bf16(float x) { return bf16_value(bf16_bits(x)); }
inline float round_to_tf32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const bool special = (bits & 0x7f800000u) == 0x7f800000u;
  const std::uint32_t rounded = special ? bits : (bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u;
  return std::bit_cast<float>(x != x ? 0x7fffe000u : rounded);
}

namespace detail {
/// An absolute value rounded to `fraction` bits if its exponent is at least `lowest`, else to a multiple of the last
/// digit at that exponent. Returns the bits above the dropped ones, with the exponent biased by 1 - `lowest`.
template <int fraction, int lowest>
std::uint32_t rounded_magnitude(float size) {
  constexpr int cut = 23 - fraction;
  const auto bits = std::bit_cast<std::uint32_t>(size);
  const std::uint32_t normal = (bits + ((1u << (cut - 1)) - 1) + ((bits >> cut) & 1u)) >> cut;
  const float step = power_of_two(lowest + cut);  // adding it moves the digits of a subnormal to the last bits
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(size + step) - std::bit_cast<std::uint32_t>(step);
  return size < power_of_two(lowest) ? subnormal : normal - (static_cast<std::uint32_t>(126 + lowest) << fraction);
}
}  // namespace detail

// The bits of each narrow floating-point type for a float, and back.
std::uint16_t f16_bits(float x);
float f16_value(std::uint16_t bits);
// fp8; every NaN is 0x7f.
inline std::uint8_t f8e4m3_bits(float x) {
  const float size = detail::clamp(std::fabs(x), 0.0f, 448.0f);
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(x) >> 24 & 0x80u;
  return static_cast<std::uint8_t>(x != x ? 0x7fu : sign | detail::rounded_magnitude<3, -6>(size));
}
inline float f8e4m3_value(std::uint8_t bits) {
  const float size = std::bit_cast<float>((bits & 0x7fu) << 20) * 0x1p120f;
  const float number = (bits & 0x7fu) == 0x7fu ? std::numeric_limits<float>::quiet_NaN() : size;
  return bits & 0x80u ? -number : number;
}
inline std::uint8_t f8e5m2_bits(float x) {
  const float size = detail::clamp(std::fabs(x), 0.0f, 57344.0f);
  const std::uint32_t sign = std::bit_cast<std::uint32_t>(x) >> 24 & 0x80u;
  const bool infinite = std::fabs(x) == std::numeric_limits<float>::infinity();
  const std::uint32_t number = infinite ? 0x7cu : detail::rounded_magnitude<2, -14>(size);
  return static_cast<std::uint8_t>(x != x ? 0x7fu : sign | number);
}
inline float f8e5m2_value(std::uint8_t bits) {
  const std::uint32_t magnitude = bits & 0x7fu;
  const float size = std::bit_cast<float>(magnitude << 21) * 0x1p112f;
  const float number = magnitude > 0x7cu    ? std::numeric_limits<float>::quiet_NaN()
                       : magnitude == 0x7cu ? std::numeric_limits<float>::infinity()
                                            : size;
  return bits & 0x80u ? -number : number;
}

/// A number on its way to a type narrower than f32. Integers are rounded to f32 first, as ops.def says.
template <class T>
float to_be_narrowed(T x) {
  return static_cast<float>(x);
}
inline float to_be_narrowed(double x) { return tessera::internal::detail::to_odd<float>(x); }

// Casts. Floating-point to integer truncates and saturates, NaN becomes 0; integer to a narrower integer wraps.
/// To the element type T, as the type that holds it.
template <std::integral T, std::integral Held, std::floating_point From>
Held to_integer(From x) {
  using limits = std::numeric_limits<T>;
  constexpr From low = static_cast<From>(limits::min());
  constexpr From beyond = From(2) * static_cast<From>(T(1) << (limits::digits - 1));
  const From inside = x >= low && x < beyond ? x : From(0);
  const Held limit = x >= beyond ? limits::max() : x < low ? limits::min() : T(0);
  return static_cast<Held>(inside) + limit;
}
template <std::integral T, std::integral Held, std::integral From>
Held to_integer(From x) {
  return static_cast<Held>(static_cast<T>(x));
}
template <class T>
std::int32_t to_pred(T x) {
  return x != T(0) ? 1 : 0;
}

}  // namespace tessera::internal::math
