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
#define REDUCTION(name, operands, combine, identity_, ...)                                                 \
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

}  // namespace tessera::math
