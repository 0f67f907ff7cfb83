// The host expressions of ops.def as function objects: the CPU executor runs them over strips, the folder and the
// launch over single numbers.
#pragma once
#include <limits>

#include "graph/math.hpp"
#include "graph/math_bits.hpp"
#include "graph/math_exp.hpp"
#include "graph/math_trig.hpp"
#include "graph/op.hpp"

namespace tessera::math {

template <Op op>
struct Host;

#define UNARY(name, operands, result, host, ...) \
  template <>                                    \
  struct Host<Op::name> {                        \
    template <class T>                           \
    static auto apply(T a) {                     \
      return host;                               \
    }                                            \
  };
#define BINARY(name, operands, result, host, ...) \
  template <>                                     \
  struct Host<Op::name> {                         \
    template <class T>                            \
    static auto apply(T a, T b) {                 \
      return host;                                \
    }                                             \
  };
#define TERNARY(name, operands, result, host, ...) \
  template <>                                      \
  struct Host<Op::name> {                          \
    template <class T>                             \
    static auto apply(T a, T b, T c) {             \
      return host;                                 \
    }                                              \
  };
#define REDUCTION(name, operands, combine, real, integer, identity_, ...)                                  \
  template <>                                                                                              \
  struct Host<Op::name> {                                                                                  \
    template <class T>                                                                                     \
    static T apply(T a, T b) {                                                                             \
      return combine;                                                                                      \
    }                                                                                                      \
    template <class T>                                                                                     \
    static constexpr T identity() {                                                                        \
      using limits = std::numeric_limits<T>;                                                               \
      [[maybe_unused]] constexpr T zero = 0;                                                               \
      [[maybe_unused]] constexpr T one = 1;                                                                \
      [[maybe_unused]] constexpr T highest = limits::has_infinity ? limits::infinity() : limits::max();    \
      [[maybe_unused]] constexpr T lowest = limits::has_infinity ? -limits::infinity() : limits::lowest(); \
      return identity_;                                                                                    \
    }                                                                                                      \
  };
#define STRUCTURAL(...)
#include "graph/ops.def"

/// A value in host form cast to an element type, in host form.
template <ElementType to, class T>
auto cast_to(T x) {
  if constexpr (to == ElementType::f32)
    return to_f32(x);
  else if constexpr (to == ElementType::f16)
    return tessera::round_to_f16(to_f32(x));
  else if constexpr (to == ElementType::bf16)
    return round_to_bf16(to_f32(x));
  else if constexpr (to == ElementType::tf32)
    return round_to_tf32(to_f32(x));
  else if constexpr (to == ElementType::i32)
    return to_i32(x);
  else if constexpr (to == ElementType::i64)
    return to_i64(x);
  else if constexpr (to == ElementType::u8)
    return to_u8(x);
  else {
    static_assert(to == ElementType::pred, "a new element type says here how a value is cast to it");
    return to_pred(x);
  }
}

/// How a value of an element type is held on the host.
template <ElementType type>
using host_form = decltype(cast_to<type>(0));

/// A value in host form whose bits, as a tensor would hold them, are those of x, in host form as well.
template <ElementType from, ElementType to>
host_form<to> bitcast_to(host_form<from> x) {
  static_assert(bitcasts(from, to));
  const auto bits = [&] {
    if constexpr (from == ElementType::f16)
      return tessera::f16(x).bits;
    else if constexpr (from == ElementType::bf16)
      return bf16_bits(x);
    else if constexpr (info(from).bytes == 8)
      return std::bit_cast<std::uint64_t>(x);
    else if constexpr (info(from).bytes == 4)
      return std::bit_cast<std::uint32_t>(x);
    else
      return static_cast<std::uint16_t>(x);  // of a byte the upper half is cut off again
  }();
  if constexpr (to == ElementType::f16)
    return static_cast<float>(std::bit_cast<tessera::f16>(bits));
  else if constexpr (to == ElementType::bf16)
    return bf16_value(bits);
  else if constexpr (sizeof(host_form<to>) == sizeof bits)
    return std::bit_cast<host_form<to>>(bits);
  else
    return cast_to<to>(static_cast<host_form<to>>(bits));
}

}  // namespace tessera::math
