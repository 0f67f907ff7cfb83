// Overloads that reject std::exp(tile) and the like with one sentence, instead of the compiler's list of candidates.
// They make no program valid. They take the base class of all expressions, so where namespaces std and tessera are both
// used, overload resolution of exp(tile) prefers the function of tessera.
#pragma once
#include "tessera/dsl/expr.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {
namespace detail {
template <class A>
LiteralExpr<f32> check_std() {
  static_assert(!std::is_same_v<A, A>,
                "tessera: functions of std take C++ numbers; for tiles, leave out std::, as in exp(x) and pow(x, y); "
                "the larger of two values is maximum(x, y), the smaller minimum(x, y)");
  return LiteralExpr<f32>(0);
}
}  // namespace detail
}  // namespace internal
}  // namespace tessera

#define OF_TILES(name)                                                \
  template <class A = void>                                           \
  auto name(const tessera::internal::ExprTag&, ...) {                 \
    return tessera::internal::detail::check_std<A>();                 \
  }                                                                   \
  template <tessera::internal::Literal N>                             \
  auto name(N, const tessera::internal::ExprTag&, ...) {              \
    return tessera::internal::detail::check_std<N>();                 \
  }
namespace std {
// clang-format off
OF_TILES(abs) OF_TILES(fabs) OF_TILES(exp) OF_TILES(exp2) OF_TILES(expm1) OF_TILES(log) OF_TILES(log2) OF_TILES(log10)
OF_TILES(log1p) OF_TILES(sqrt) OF_TILES(cbrt) OF_TILES(sin) OF_TILES(cos) OF_TILES(tan) OF_TILES(asin) OF_TILES(acos)
OF_TILES(atan) OF_TILES(sinh) OF_TILES(cosh) OF_TILES(tanh) OF_TILES(erf) OF_TILES(erfc) OF_TILES(floor) OF_TILES(ceil)
OF_TILES(trunc) OF_TILES(round) OF_TILES(isnan) OF_TILES(isinf) OF_TILES(isfinite) OF_TILES(pow) OF_TILES(atan2)
OF_TILES(copysign) OF_TILES(fma) OF_TILES(fmin) OF_TILES(fmax) OF_TILES(max) OF_TILES(min) OF_TILES(clamp)
// clang-format on
}  // namespace std
#undef OF_TILES
