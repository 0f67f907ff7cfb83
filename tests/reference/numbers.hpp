// Numbers of the element types and exact arithmetic on them, shared by the tests' oracle and the reference of whole
// graphs.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "tessera/graph/element.hpp"
#include "tessera/graph/op.hpp"

namespace tessera::internal::numbers {

using Real = long double;
static_assert(std::numeric_limits<Real>::digits >= 64, "every i64 is a Real");
__extension__ typedef __int128 Wide;

inline constexpr Real real_nan = std::numeric_limits<Real>::quiet_NaN();
inline constexpr Real real_inf = std::numeric_limits<Real>::infinity();

struct Format {
  int fraction, lowest, highest;  // bits, exponents of the smallest and largest normal numbers
};
inline Format format_of(ElementType type) {
  switch (type) {
    case ElementType::f16:
      return {10, -14, 15};
    case ElementType::bf16:
      return {7, -126, 127};
    case ElementType::tf32:
      return {10, -126, 127};
    case ElementType::f64:
      return {52, -1022, 1023};
    case ElementType::f8e4m3:
      return {3, -6, 8};
    case ElementType::f8e5m2:
      return {2, -14, 15};
    default:
      return {23, -126, 127};
  }
}

/// For an 8-bit type that saturates larger numbers to this one; f8e4m3 has no infinity either.
inline Real saturation_of(ElementType type) { return type == ElementType::f8e4m3 ? 448 : 57344; }
inline bool has_8_bits(ElementType type) { return type == ElementType::f8e4m3 || type == ElementType::f8e5m2; }

/// To the nearest number of the type, ties to even; beyond the largest by half an ulp: infinity, for 8-bit types the
/// largest.
inline Real rounded(Real x, ElementType type) {
  if (type == ElementType::f8e4m3 && std::isinf(x)) return std::copysign(saturation_of(type), x);
  if (x == 0 || !std::isfinite(x)) return x;
  if (has_8_bits(type) && std::abs(x) > saturation_of(type)) return std::copysign(saturation_of(type), x);
  const Format format = format_of(type);
  const Real step = std::ldexp(Real(1), std::max(std::ilogb(x), format.lowest) - format.fraction);
  const Real y = std::nearbyint(x / step) * step;
  return std::abs(y) >= std::ldexp(Real(1), format.highest + 1) ? std::copysign(real_inf, x) : y;
}

/// The bits of a number that the type represents.
inline std::uint64_t bits_of(Real x, ElementType type) {
  const Format format = format_of(type);
  const int width = 8 * info(type).bytes;
  const std::uint64_t sign = std::signbit(x) ? std::uint64_t{1} << (width - 1) : 0;
  const auto top = static_cast<std::uint64_t>(format.highest * 2 + 1) << format.fraction;  // infinity
  if (std::isnan(x)) return has_8_bits(type) ? 0x7f : top | std::uint64_t{1} << (format.fraction - 1);
  if (std::isinf(x)) return sign | top;
  if (x == 0) return sign;
  const int exponent = std::max(std::ilogb(x), format.lowest);
  const auto steps = static_cast<std::uint64_t>(std::ldexp(std::abs(x), format.fraction - exponent));
  return sign | ((static_cast<std::uint64_t>(exponent - format.lowest) << format.fraction) + steps);
}

inline Real number_of(std::uint64_t bits, ElementType type) {
  const Format format = format_of(type);
  const int width = 8 * info(type).bytes;
  if (width < 64) bits &= (std::uint64_t{1} << width) - 1;  // a negative integer has more bits set
  const std::uint64_t one = 1;
  const bool negative = (bits >> (width - 1)) & 1;
  const auto steps = bits & ((one << format.fraction) - 1);
  const int exponent = static_cast<int>((bits & ~(one << (width - 1))) >> format.fraction);
  Real x;
  if (type == ElementType::f8e4m3 && (bits & 0x7f) == 0x7f)
    x = real_nan;
  else if (exponent == format.highest * 2 + 1 && type != ElementType::f8e4m3)
    x = steps ? real_nan : real_inf;
  else if (exponent == 0)
    x = std::ldexp(Real(steps), format.lowest - format.fraction);
  else
    x = std::ldexp(Real(steps | one << format.fraction), exponent - 1 + format.lowest - format.fraction);
  return negative ? -x : x;
}

/// An integer in the type's range: for u64 the i64 with the same bits represents the number.
inline Wide number_in(ElementType type, i64 x) {
  return type == ElementType::u64 ? Wide(static_cast<std::uint64_t>(x)) : Wide(x);
}
inline i64 held(Real x) { return x < 0 ? static_cast<i64>(x) : static_cast<i64>(static_cast<std::uint64_t>(x)); }

inline bool is_real(ElementType type) { return info(type).kind == ElementKind::real; }

/// An integer wrapped to the type's range.
inline i64 wrapped(Wide x, ElementType type) {
  if (type == ElementType::pred) return x != 0;
  const int width = 8 * info(type).bytes;
  const bool is_signed = name(type)[0] == 'i';
  Wide y = x & ((Wide{1} << width) - 1);
  if (is_signed && (y >> (width - 1) & 1)) y -= Wide{1} << width;
  return static_cast<i64>(static_cast<std::uint64_t>(y));
}
inline Wide lowest_number(ElementType type) {
  return name(type)[0] == 'i' ? -(Wide{1} << (8 * info(type).bytes - 1)) : 0;
}
inline Wide highest_number(ElementType type) {
  if (type == ElementType::pred) return 1;
  return (Wide{1} << (8 * info(type).bytes - (name(type)[0] == 'i' ? 1 : 0))) - 1;
}
inline i64 lowest_of(ElementType type) { return wrapped(lowest_number(type), type); }
inline i64 highest_of(ElementType type) { return wrapped(highest_number(type), type); }

/// The element of a stored type at an address.
inline Real read_number(const void* from, ElementType type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<std::size_t>(info(type).bytes));  // little endian
  if (is_real(type)) return number_of(bits, type);
  return static_cast<Real>(number_in(type, wrapped(bits, type)));
}

inline Real unary(Op op, Real x) {
  switch (op) {
    case Op::neg:
      return -x;
    case Op::abs:
      return std::abs(x);
    case Op::exp:
      return std::exp(x);
    case Op::exp2:
      return std::exp2(x);
    case Op::expm1:
      return std::expm1(x);
    case Op::log:
      return std::log(x);
    case Op::log2:
    case Op::log2_approx:
      return std::log2(x);
    case Op::log10:
      return std::log10(x);
    case Op::log1p:
      return std::log1p(x);
    case Op::sin:
    case Op::sin_approx:
      return std::sin(x);
    case Op::cos:
    case Op::cos_approx:
      return std::cos(x);
    case Op::tan:
      return std::tan(x);
    case Op::asin:
      return std::asin(x);
    case Op::acos:
      return std::acos(x);
    case Op::atan:
      return std::atan(x);
    case Op::sinh:
      return std::sinh(x);
    case Op::cosh:
      return std::cosh(x);
    case Op::erf:
      return std::erf(x);
    case Op::erfc:
      return std::erfc(x);
    case Op::cbrt:
      return std::cbrt(x);
    case Op::floor:
      return std::floor(x);
    case Op::ceil:
      return std::ceil(x);
    case Op::trunc:
      return std::trunc(x);
    case Op::round:
      return std::nearbyint(x);
    case Op::sign:
      return x > 0 ? 1 : x < 0 ? -1 : x;
    case Op::tanh:
    case Op::tanh_approx:
      return std::tanh(x);
    case Op::sigmoid2:
      return 1 / (1 + std::exp2(-x));
    case Op::sqrt:
    case Op::sqrt_approx:
      return std::sqrt(x);
    case Op::rsqrt:
      return 1 / std::sqrt(x);
    default:
      throw std::logic_error("numbers.hpp lacks real " + std::string(name(op)));
  }
}
/// For reals, a pred.
inline bool holds(Op op, Real x) {
  switch (op) {
    case Op::isnan:
      return std::isnan(x);
    case Op::isinf:
      return std::isinf(x);
    case Op::isfinite:
      return std::isfinite(x);
    default:
      throw std::logic_error("numbers.hpp lacks " + std::string(name(op)));
  }
}
inline Real real_function(Op op, Real x, Real y) {
  switch (op) {
    case Op::pow:
      return std::pow(x, y);
    case Op::atan2:
      return std::atan2(x, y);
    case Op::copysign:
      return std::copysign(x, y);
    default:
      throw std::logic_error("numbers.hpp lacks real " + std::string(name(op)));
  }
}

inline Wide unary(Op op, Wide x) {
  switch (op) {
    case Op::bitwise_not:
      return -x - 1;
    case Op::sign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case Op::neg:
      return -x;
    case Op::abs:
      return x < 0 ? -x : x;
    case Op::logical_not:
      return x == 0;
    default:
      throw std::logic_error("numbers.hpp lacks integer " + std::string(name(op)));
  }
}

/// Philox 4x32-10 (Salmon et al., 2011, figure 4): the words of one counter.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53} * counter[0], right = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(left)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}
/// Word `index` of the stream of `key`: counters count from 0, four words each.
inline std::uint32_t random_word(i64 key, i64 index) {
  const auto k = static_cast<std::uint64_t>(key), block = static_cast<std::uint64_t>(index) >> 2;
  return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32)})[index & 3];
}

/// A product of which the lower 128 bits are kept: that of two u64 exceeds a Wide.
inline Wide product(Wide x, Wide y) {
  __extension__ typedef unsigned __int128 Bits;
  return static_cast<Wide>(static_cast<Bits>(x) * static_cast<Bits>(y));
}

inline Wide binary(Op op, Wide x, Wide y) {
  const auto quotient = [&]() -> Wide { return y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0)); };
  switch (op) {
    case Op::add:
      return x + y;
    case Op::sub:
      return x - y;
    case Op::mul:
      return product(x, y);
    case Op::floor_div:
      return quotient();
    case Op::modulo:
      return y == 0 ? 0 : x - product(quotient(), y);
    case Op::minimum:
      return std::min(x, y);
    case Op::maximum:
      return std::max(x, y);
    case Op::logical_and:
      return x & y;
    case Op::logical_or:
      return x | y;
    case Op::logical_xor:
      return x != y;
    case Op::bitwise_and:
      return x & y;
    case Op::bitwise_or:
      return x | y;
    case Op::bitwise_xor:
      return x ^ y;
    case Op::random_bits:
      return static_cast<std::int32_t>(random_word(static_cast<i64>(x), static_cast<i64>(y)));
    default:
      throw std::logic_error("numbers.hpp lacks integer " + std::string(name(op)));
  }
}

/// Ops that depend on the number of bits of the type, and all others.
inline Wide unary(Op op, ElementType type, i64 x) {
  std::string digits;
  for (int bit = 8 * info(type).bytes; bit-- > 0;) digits += x >> bit & 1 ? '1' : '0';
  switch (op) {
    case Op::popcount:
      return std::count(digits.begin(), digits.end(), '1');
    case Op::clz:
      return static_cast<i64>(std::min(digits.find('1'), digits.size()));
    default:
      return unary(op, number_in(type, x));
  }
}
inline Wide binary(Op op, ElementType type, i64 a, i64 b) {
  const Wide left = number_in(type, a), right = number_in(type, b);
  const int width = 8 * info(type).bytes, count = right < 0 || right >= width ? width : static_cast<int>(right);
  const Wide factor = Wide{1} << count;
  switch (op) {
    case Op::shift_left:
      return product(left, factor);
    case Op::shift_right:
      return left / factor - (left % factor < 0);  // rounded down
    default:
      return binary(op, left, right);
  }
}
inline Wide ternary(Op op, Wide a, Wide b, Wide c) {
  switch (op) {
    case Op::clamp:
      return std::min(std::max(a, b), c);
    default:
      throw std::logic_error("numbers.hpp lacks integer " + std::string(name(op)));
  }
}

}  // namespace tessera::internal::numbers
