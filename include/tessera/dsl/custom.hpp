// Custom elementwise ops: CUDA C++, and a C++ function that computes the same.
#pragma once
#include <string>

#include "tessera/dsl/expr.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A custom op applied to one to three operands.
template <Element T_, int R_, class... A>
struct Custom : ExprTag {
  using type = T_;
  static constexpr int rank = R_;
  CustomFunction function;
  OperandList<std::index_sequence_for<A...>, A...> operands;
  Custom(CustomFunction f, A... operand) : function(std::move(f)), operands{{operand}...} {}
  Handle lower(Trace& trace, Location location) const { return operands.custom(function, trace, location); }
};

namespace detail {

template <class F, class T, int operands>
void run_custom(void* out, const void* a, const void* b, const void* c, int n) {
  const auto of = [](const void* x, int i) { return static_cast<const T*>(x)[i]; };
  for (int i = 0; i < n; ++i) {
    T& result = static_cast<T*>(out)[i];
    if constexpr (operands == 1)
      result = F{}(of(a, i));
    else if constexpr (operands == 2)
      result = F{}(of(a, i), of(b, i));
    else
      result = F{}(of(a, i), of(b, i), of(c, i));
  }
}

template <class F, class Pointer>
struct CudaOp;
template <class F, class T, class... A>
struct CudaOp<F, T (*)(A...)> {
  static_assert((std::same_as<T, f32> || std::same_as<T, i32>)&&(std::same_as<T, A> && ...) && sizeof...(A) > 0 &&
                    sizeof...(A) <= 3,
                "tessera: the function of a cuda_op takes one to three floats and returns a float, or takes ints and "
                "returns an int");
  std::string name, expression;

  template <Operand... B>
  auto operator()(const B&... b) const {
    static_assert(sizeof...(A) == sizeof...(B), "tessera: a cuda_op takes as many operands as its function");
    constexpr int operands = sizeof...(A);
    constexpr int rank = std::max({0, rank_of<B>()...});
    return Custom<T, rank, decltype(operand<T>(b))...>(
        CustomFunction{name, expression, element_type<T>, operands, &run_custom<F, T, operands>}, operand<T>(b)...);
  }
};

}  // namespace detail

/// A custom elementwise op on f32 or i32. On a GPU it is `expression`, CUDA C++ of operands named a, b and c; on the
/// CPU it is `function`, a lambda without captures that must compute the same. It is called like any other op,
/// broadcasts its operands, and is fused with neighboring elementwise ops:
///
///     const auto softsign = cuda_op("softsign", "a / (1.0f + fabsf(a))", [](float a) { return a / (1 + std::abs(a)); });
///     Tile y = softsign(x);
///
/// Error at trace time if the name is not an identifier, or if another op of the kernel has it.
template <class F>
auto cuda_op(std::string name, std::string expression, F) {
  constexpr bool plain = std::is_default_constructible_v<F> && requires(F f) { +f; };
  static_assert(plain, "tessera: the function of a cuda_op is a lambda without captures, of floats or of ints");
  if constexpr (plain) return detail::CudaOp<F, decltype(+F{})>{std::move(name), std::move(expression)};
}

}  // namespace internal
}  // namespace tessera
