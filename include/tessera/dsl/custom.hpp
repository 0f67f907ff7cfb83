// Custom elementwise ops: CUDA C++, and a C++ function that computes the same.
#pragma once
#include <string>

#include "tessera/dsl/expr.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A custom op applied to its operands.
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

// F on elements of type T, which are in host form.
template <class F, class T, int operands>
void run_custom(void* out, const void* const* in, int n) {
  constexpr ElementInfo type = info(element_type<T>);
  using Held = std::conditional_t<type.computes, T, std::conditional_t<type.kind == ElementKind::real, f32, i32>>;
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    for (int i = 0; i < n; ++i)
      static_cast<Held*>(out)[i] = static_cast<Held>(F{}(static_cast<T>(static_cast<const Held*>(in[K])[i])...));
  }(std::make_index_sequence<operands>());
}

template <class F, class Pointer>
struct CudaOp;
template <class F, class T, class... A>
struct CudaOp<F, T (*)(A...)> {
  static_assert(
      Stored<T> && (std::same_as<T, A> && ...) && sizeof...(A) > 0 && sizeof...(A) <= CustomFunction::most_operands,
      "tessera: the function of a cuda_op takes one to four numbers of one element type, such as float, int or "
      "bf16, and returns one of that type");
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

/// A custom elementwise op on one to four tiles of one element type, any that tensors hold. On a GPU it is
/// `expression`, CUDA C++ of operands named a, b, c and d; on the CPU it is `function`, a lambda without captures that
/// must compute the same. In the expression f32 is float, f64 double, i32 int, i64 long long, u32 unsigned and u64
/// unsigned long long; operands of narrow floating-point types are floats, of narrow integers ints, and the result is
/// cast to the type. It is called like any other op, broadcasts its operands, and is fused with neighboring elementwise
/// ops:
///
///     const auto softsign = cuda_op("softsign", "a / (1.0f + fabsf(a))", [](float a) { return a / (1 + std::abs(a));
///     }); Tile y = softsign(x);
///
/// Error at trace time if the name is not an identifier, or if another op of the kernel has it.
template <class F>
auto cuda_op(std::string name, std::string expression, F) {
  constexpr bool plain = std::is_default_constructible_v<F> && requires(F f) { +f; };
  static_assert(plain,
                "tessera: the function of a cuda_op is a lambda without captures, of numbers of one element type");
  if constexpr (plain) return detail::CudaOp<F, decltype(+F{})>{std::move(name), std::move(expression)};
}

}  // namespace internal
}  // namespace tessera
