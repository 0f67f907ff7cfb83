// The host expressions of ops.def as function objects: the CPU executor applies them to strips, constant folding and
// the launch to single numbers.
#pragma once
#include <limits>

#include "graph/math.hpp"
#include "graph/math_bits.hpp"
#include "graph/math_double.hpp"
#include "graph/math_exp.hpp"
#include "graph/math_trig.hpp"
#include "tessera/graph/op.hpp"

namespace tessera::internal::math {

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
#define ATOMIC(name, operands, moved, combine, ...)                                    \
  template <>                                                                          \
  struct Host<Op::name> {                                                              \
    template <class T>                                                                 \
    static T apply([[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c) { \
      return combine;                                                                  \
    }                                                                                  \
  };
#include "tessera/graph/ops.def"

/// The C++ type that holds values of an element type.
template <HostType type>
struct Held;
template <>
struct Held<HostType::f32> : std::type_identity<float> {};
template <>
struct Held<HostType::f64> : std::type_identity<double> {};
template <>
struct Held<HostType::i32> : std::type_identity<std::int32_t> {};
template <>
struct Held<HostType::i64> : std::type_identity<std::int64_t> {};
template <>
struct Held<HostType::u32> : std::type_identity<std::uint32_t> {};
template <>
struct Held<HostType::u64> : std::type_identity<std::uint64_t> {};
template <ElementType type>
using host_form = typename Held<host_type(type)>::type;

/// Does the op take operands of a type that is held as a T?
template <Op op, class T>
inline constexpr bool takes = [] {
  bool some = false;
#define TYPE(name, ...) \
  some = some || (accepts(op, ElementType::name) && std::is_same_v<host_form<ElementType::name>, T>);
#include "tessera/graph/types.def"
  return some;
}();

/// A float rounded to a narrow floating-point type.
template <ElementType to>
float narrowed(float x);
#define NARROW_FLOAT(name, ...)                       \
  template <>                                         \
  inline float narrowed<ElementType::name>(float x) { \
    return name##_value(name##_bits(x));              \
  }
#define TYPE(...)
#include "tessera/graph/types.def"

/// A value in host form cast to an element type, in host form.
template <ElementType to, class T>
host_form<to> cast_to(T x) {
  if constexpr (info(to).kind == ElementKind::integer)
    return to_integer<typename tessera::internal::detail::TypeOf<to>::type, host_form<to>>(x);
  else if constexpr (to == ElementType::f32 || to == ElementType::f64)
    return static_cast<host_form<to>>(x);
  else if constexpr (to == ElementType::tf32)
    return round_to_tf32(to_be_narrowed(x));
  else if constexpr (info(to).kind == ElementKind::real)
    return narrowed<to>(to_be_narrowed(x));
  else
    return to_pred(x);
}

/// The value in host form that has the same bits in a tensor as x, which is in host form as well.
template <ElementType from, ElementType to>
host_form<to> bitcast_to(host_form<from> x) {
  static_assert(bitcasts(from, to));
  using From = typename tessera::internal::detail::TypeOf<from>::type;
  using To = typename tessera::internal::detail::TypeOf<to>::type;
  const From stored = [&] {
    if constexpr (from == ElementType::bf16)
      return std::bit_cast<tessera::internal::bf16>(bf16_bits(x));
    else
      return static_cast<From>(x);
  }();
  const To other = std::bit_cast<To>(stored);
  if constexpr (to == ElementType::bf16)
    return bf16_value(other.bits);
  else
    return static_cast<host_form<to>>(other);
}

}  // namespace tessera::internal::math
