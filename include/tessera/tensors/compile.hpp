// compile(f): a function of tensors whose kernels are made once for each set of extents.
#pragma once
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#include "tessera/tensors/functions.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The untyped part of Compiled: plans by the layouts of the arguments.
class [[gnu::visibility("default")]] LazyFunction {
 public:
  using Body = std::function<std::vector<LazyRef>(std::span<const LazyRef> arguments)>;
  explicit LazyFunction(Body body);
  /// `arguments` are inputs and scalars.
  std::vector<detail::AnyTensor> run(std::span<const LazyRef> arguments, const Stream* stream) const;
  LazySequence sequence(std::span<const LazyRef> arguments) const;
  std::string describe(std::span<const LazyRef> arguments) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

namespace detail {
template <class R>
struct LazyResults {  // one result
  using Tensors = Tensor<typename R::type, R::rank>;
  static std::vector<LazyRef> nodes(const R& result) { return {result.node()}; }
  static Tensors tensors(const std::vector<AnyTensor>& results) { return Tensors(results.front()); }
};
template <class... R>
struct LazyResults<std::tuple<R...>> {
  using Tensors = std::tuple<Tensor<typename R::type, R::rank>...>;
  static std::vector<LazyRef> nodes(const std::tuple<R...>& results) {
    return std::apply([](const R&... result) { return std::vector<LazyRef>{result.node()...}; }, results);
  }
  static Tensors tensors(const std::vector<AnyTensor>& results) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Tensors(Tensor<typename R::type, R::rank>(results[I])...);
    }
    (std::index_sequence_for<R...>());
  }
};

// The argument of a parameter: a tensor of the same type and rank, or a number.
template <class P>
LazyRef argument_for(const Tensor<typename P::type, P::rank>& tensor) requires(P::rank > 0) {
  return lazy_input(tensor.any(), Location::current());
}
template <class P>
LazyRef argument_for(typename P::type number) requires(P::rank == 0) {
  return lazy_scalar(element_type<typename P::type>, cell_of(number), Location::current());
}

template <class F>
struct LazySignature : LazySignature<decltype(&F::operator())> {};
template <class C, class R, class... P>
struct LazySignature<R (C::*)(P...) const> {
  using Result = R;
  using Parameters = std::tuple<std::remove_cvref_t<P>...>;
};
}  // namespace detail

/// The launches of one call, in memory of its own: `sequence.run(stream)` computes `results` again from the contents
/// that the arguments have then; `sequence.record(stream)` makes a graph of them.
template <class Tensors>
struct CompiledSequence {
  Sequence sequence;
  Tensors results;
};

template <class R, class Parameters>
class Compiled;
/// A function of tensors, made by compile(). Calls with arguments of extents and strides that it has seen only launch
/// kernels. A handle; any number of threads may call it.
template <class R, class... P>
class Compiled<R, std::tuple<P...>> {
 public:
  using Tensors = typename detail::LazyResults<R>::Tensors;
  template <class F>
  explicit Compiled(F function)
      : function_([function = std::move(function)](std::span<const LazyRef> arguments) {
          return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return detail::LazyResults<R>::nodes(function(P(arguments[I])...));
          }
          (std::index_sequence_for<P...>());
        }) {}

  /// Takes a Tensor for each Lazy parameter, and a number for each one of rank 0.
  template <class... A>
  Tensors operator()(const A&... a) const {
    return detail::LazyResults<R>::tensors(function_.run(nodes(a...), nullptr));
  }
  template <class... A>
  Tensors on(const Stream& stream, const A&... a) const {
    return detail::LazyResults<R>::tensors(function_.run(nodes(a...), &stream));
  }
  template <class... A>
  CompiledSequence<Tensors> sequence(const A&... a) const {
    LazySequence made = function_.sequence(nodes(a...));
    return {std::move(made.sequence), detail::LazyResults<R>::tensors(made.results)};
  }
  template <class... A>
  std::string describe(const A&... a) const {
    return function_.describe(nodes(a...));
  }

 private:
  template <class... A>
  static std::array<LazyRef, sizeof...(P)> nodes(const A&... a) {
    static_assert(sizeof...(A) == sizeof...(P),
                  "tessera: a compiled function takes as many arguments as it has parameters");
    return {detail::argument_for<P>(a)...};
  }
  LazyFunction function_;
};

/// Makes a function of tensors from one of Lazy parameters, which returns a Lazy or a std::tuple of them:
///
///     auto mlp = compile([=](Lazy<bf16, 2> x) { return x.linear(w1, b1).gelu().linear(w2, b2); });
///     Tensor<bf16, 2> y = mlp(x);
///
/// `f` runs when a call has extents or strides that no call had before. Its captures belong to the program: the
/// tensors as they are, numbers as part of the kernels' text. A parameter of rank 0, Lazy<f32, 0>, is a number that may
/// differ from call to call.
template <class F>
auto compile(F f) {
  using Signature = detail::LazySignature<F>;
  return Compiled<typename Signature::Result, typename Signature::Parameters>(std::move(f));
}

}  // namespace internal
}  // namespace tessera
