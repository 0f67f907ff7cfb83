// Ops on the bits of a number, and on its relation to integers, infinities and NaN: the same for each type.
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tessera::internal::math {

template <std::floating_point T>
T floor(T x) {
  return std::floor(x);
}
template <std::floating_point T>
T ceil(T x) {
  return std::ceil(x);
}
template <std::floating_point T>
T trunc(T x) {
  return std::trunc(x);
}
/// Rounds halves to the even integer.
template <std::floating_point T>
T round(T x) {
  return std::rint(x);
}
template <class T>
T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
}
template <std::unsigned_integral T>
T sign(T x) {
  return x > T(0) ? T(1) : T(0);
}
template <std::floating_point T>
T copysign(T x, T y) {
  return std::copysign(x, y);
}
template <std::floating_point T>
bool isnan(T x) {
  return x != x;
}
template <std::floating_point T>
bool isinf(T x) {
  return std::fabs(x) == std::numeric_limits<T>::infinity();
}
template <std::floating_point T>
bool isfinite(T x) {
  return std::fabs(x) <= std::numeric_limits<T>::max();
}

template <std::integral T>
T bitwise_not(T a) {
  return static_cast<T>(~a);
}
template <std::integral T>
T bitwise_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <std::integral T>
T bitwise_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <std::integral T>
T bitwise_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
/// Does a shift by b keep any of the bits?
template <std::integral T>
bool is_shift(T b) {
  return static_cast<std::make_unsigned_t<T>>(b) < 8 * sizeof(T);
}
template <std::integral T>
T shift_left(T a, T b) {
  using Bits = std::make_unsigned_t<T>;
  return is_shift(b) ? static_cast<T>(static_cast<Bits>(a) << (b & T(8 * sizeof(T) - 1))) : T(0);
}
template <std::integral T>
T shift_right(T a, T b) {
  return is_shift(b) ? static_cast<T>(a >> (b & T(8 * sizeof(T) - 1))) : a < T(0) ? static_cast<T>(-1) : T(0);
}
template <std::unsigned_integral T>
T shift_right(T a, T b) {
  return is_shift(b) ? static_cast<T>(a >> (b & T(8 * sizeof(T) - 1))) : T(0);
}
template <std::integral T>
T popcount(T a) {
  return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(a)));
}
template <std::integral T>
T clz(T a) {
  return static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(a)));
}

}  // namespace tessera::internal::math
