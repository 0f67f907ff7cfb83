// The host expressions of ops.def as function objects: the CPU executor runs them over strips, the folder and the
// launch over single numbers.
#pragma once
#include <limits>

#include "graph/math.hpp"
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

}  // namespace tessera::math
