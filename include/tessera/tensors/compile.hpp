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

template <class P, class A>
LazyRef argument_for(const A& a, Location location) {
  if constexpr (P::rank == 0) {
    using T = typename P::type;
    static_assert(Computing<T>, "tessera: a number of a compiled function is of a type that computes, such as f32");
    static_assert(Literal<A>, "tessera: a parameter of rank 0 of a compiled function takes a number");
    static_assert(!Literal<A> || std::is_floating_point_v<T> || std::integral<A>,
                  "tessera: a parameter of an integer type takes an integer; convert the number first");
    if constexpr (std::integral<T> && std::integral<A>)
      if (!std::in_range<T>(a))
        throw Error(std::string(location.file) + ":" + std::to_string(location.line) +
                    ": a compiled function is given " + text_of(a) + " for a number of " +
                    std::string(name(element_type<T>)));
    return lazy_scalar(element_type<T>, cell_of(static_cast<T>(a)), location);
  } else {
    constexpr bool fits = std::is_same_v<A, Tensor<typename P::type, P::rank>>;
    static_assert(fits,
                  "tessera: a parameter Lazy<T, R> of a compiled function takes a Tensor<T, R>; run() an expression");
    if constexpr (fits) return lazy_input(a.any(), location);
    return nullptr;
  }
}

// Copies results into tensors, in their order.
template <class T, int R>
void copy_results(const Tensor<T, R>& to, const Tensor<T, R>& from, const Stream& stream) {
  to.copy_from(from, stream);
}
template <class... T, int... R>
void copy_results(const std::tuple<Tensor<T, R>...>& to, const std::tuple<Tensor<T, R>...>& from,
                  const Stream& stream) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (std::get<I>(to).copy_from(std::get<I>(from), stream), ...); }
  (std::index_sequence_for<Tensor<T, R>...>());
}
template <class T, int R>
const Device& device_of_results(const Tensor<T, R>& tensor) {
  return tensor.device();
}
template <class T, int R, class... More>
const Device& device_of_results(const std::tuple<Tensor<T, R>, More...>& tensors) {
  return std::get<0>(tensors).device();
}

template <class F>
concept has_one_call = requires {
  &F::operator();
};
template <class Parameters>
inline constexpr bool all_lazy = false;
template <class... P>
inline constexpr bool all_lazy<std::tuple<P...>> = (Traits<P>::is_lazy && ...);
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
  Compiled(F function, Location location)
      : location_(location), function_([function = std::move(function)](std::span<const LazyRef> arguments) {
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
  /// Computes into tensors of yours, a std::tuple of them if there are several results, which may be arguments, too:
  /// all arguments are read as if before any result is written.
  template <class... A>
  void into(const Tensors& results, const A&... a) const {
    const Stream stream = detail::device_of_results(results).stream();
    detail::copy_results(results, on(stream, a...), stream);
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
  std::array<LazyRef, sizeof...(P)> nodes(const A&... a) const {
    static_assert(sizeof...(A) == sizeof...(P),
                  "tessera: a compiled function takes as many arguments as it has parameters");
    if constexpr (sizeof...(A) == sizeof...(P))
      return {detail::argument_for<P>(a, location_)...};
    else
      return {};
  }
  Location location_;
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
auto compile(F f, Location location = Location::current()) {
  static_assert(detail::has_one_call<F>,
                "tessera: compile takes a lambda whose parameters have types, Lazy<T, R>: [](Lazy<f32, 2> x) { ... }; if they "
                "have, its body does not compile");
  if constexpr (detail::has_one_call<F>) {
    using Signature = detail::LazySignature<F>;
    constexpr bool are_lazy = detail::all_lazy<typename Signature::Parameters>;
    static_assert(are_lazy, "tessera: the parameters of the function given to compile are of type Lazy<T, R>");
    if constexpr (are_lazy)
      return Compiled<typename Signature::Result, typename Signature::Parameters>(std::move(f), location);
  }
}

}  // namespace internal
}  // namespace tessera
