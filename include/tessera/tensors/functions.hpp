// Functions of tensors that are made of others: products, norms, activations, attention.
#pragma once
#include <tuple>

#include "tessera/tensors/forms.hpp"
#include "tessera/tensors/lazy.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {
template <class T>
using ComputingT = typename TypeOf<computing_type(element_type<T>)>::type;

// The device function of a map: tiles of any rank, as only their C++ types have one.
template <class F, class T, std::size_t... I>
Handle call_map(Trace& trace, const Handle* operands, Location location, std::index_sequence<I...>) {
  using C = ComputingT<T>;
  const Tile<C, 1> result(F{}(Tile<C, 1>(operands[I])...), location);
  return result.lower(trace, location);
}
template <class F, class T, std::size_t count>
Handle map_function(Trace& trace, const Handle* operands, Location location) {
  return call_map<F, T>(trace, operands, location, std::make_index_sequence<count>());
}

template <class F, class... A>
auto lazy_mapped(std::string_view name, Location location, const F&, const A&... a) {
  using T = lazy_element<A...>;
  constexpr int rank = std::max({lazy_rank<A>()...});
  static_assert(
      std::is_empty_v<F> && std::is_default_constructible_v<F>,
      "tessera: the function given to map may not capture anything; pass what differs as a tensor or a scalar");
  static_assert(Computing<ComputingT<T>>, "tessera: map takes tensors of types that compute; cast<...>() them first");
  return Lazy<T, rank>(lazy_map(&map_function<F, T, sizeof...(A)>, {lazy_ref<T>(a, location)...}, name, location));
}
template <class T>
constexpr bool check_real() {
  static_assert(info(element_type<T>).kind == ElementKind::real,
                "tessera: this function takes tensors of floating-point numbers; cast<f32>() the tensor first");
  return true;
}
// The same tensor, with its values in the type that they are computed in.
template <class A>
auto computing(const A& a, Location location) {
  using T = typename Traits<A>::type;
  return Lazy<ComputingT<T>, Traits<A>::rank>(
      lazy_cast(computing_type(element_type<T>), lazy_ref<T>(a, location), false, location));
}
// Such a value as one of T, which is rounded where it is stored.
template <class T, class C, int R>
Lazy<T, R> rounded(const Lazy<C, R>& x, Location location) {
  return Lazy<T, R>(lazy_cast(element_type<T>, x.node(), false, location));
}
}  // namespace detail

/// map(f, x, y, ...): an elementwise function of the language of kernels, without captures, of tensors that broadcast.
template <class F, LazyOperand... A>
requires detail::any_lazily<A...>
auto map(const F& function, const A&... a) {
  return detail::lazy_mapped("map", detail::place_of(a...), function, a...);
}
template <class T, int R>
template <class F>
Lazy<T, R> Lazy<T, R>::map(const F& function, std::string_view name, Location location) const {
  return detail::lazy_mapped(name, location, function, *this);
}

// Overloads for Lazy and for Tensor are more specialized than the functions of the same names that take tiles.
#define ACTIVATION(name, body)                                                      \
  template <class T, int R>                                                         \
  Lazy<T, R> name(const Lazy<T, R>& a, Location location = Location::current()) {   \
    detail::check_real<T>();                                                        \
    return detail::lazy_mapped(#name, location, [](auto x) body, a);                \
  }                                                                                 \
  template <class T, int R>                                                         \
  Lazy<T, R> name(const Tensor<T, R>& a, Location location = Location::current()) { \
    return internal::name(Lazy<T, R>(a, location), location);                       \
  }                                                                                 \
  template <class T, int R>                                                         \
  Lazy<T, R> Lazy<T, R>::name(Location location) const {                            \
    return internal::name(*this, location);                                         \
  }
ACTIVATION(gelu, { return internal::gelu(x); })            // x times the normal distribution's cumulative function
ACTIVATION(gelu_tanh, { return internal::gelu_tanh(x); })  // its approximation by tanh
ACTIVATION(silu, { return internal::silu(x); })            // x / (1 + e^-x)
ACTIVATION(sigmoid, { return internal::sigmoid(x); })      // 1 / (1 + e^-x)
/// The larger of x and 0. A NaN stays one.
ACTIVATION(relu, { return internal::maximum_nan(x, 0); })
/// log(1 + e^x).
ACTIVATION(softplus,
           { return internal::maximum(x, 0) + internal::log1p(internal::exp(-internal::abs(x))); })
#undef ACTIVATION

/// condition ? a : b, elementwise; extents broadcast.
template <Lazily C, LazyOperand A, LazyOperand B>
requires detail::any_lazily<A, B>
auto where(const C& condition, const A& a, const B& b, Location location = Location::current()) {
  using T = detail::lazy_element<A, B>;
  static_assert(std::is_same_v<typename detail::Traits<C>::type, pred>,
                "tessera: where takes a condition of pred first");
  constexpr auto fits = []<class X>() {
    if constexpr (Lazily<X>)
      return std::is_same_v<typename detail::Traits<X>::type, T>;
    else
      return true;
  };
  static_assert(fits.template operator()<A>() && fits.template operator()<B>(),
                "tessera: tensors of different element types; cast<...>() one of them first");
  constexpr int rank = std::max({detail::lazy_rank<C>(), detail::lazy_rank<A>(), detail::lazy_rank<B>()});
  return Lazy<T, rank>(lazy_select(detail::lazy_ref<pred>(condition, location), detail::lazy_ref<T>(a, location),
                                   detail::lazy_ref<T>(b, location), location));
}

/// Tensors one after another along an axis.
template <Lazily First, Lazily... More>
auto concat(int axis, const First& first, const More&... more) {
  using T = typename detail::Traits<First>::type;
  static_assert((std::is_same_v<T, typename detail::Traits<More>::type> && ...),
                "tessera: tensors of different element types; cast<...>() one of them first");
  static_assert(((detail::Traits<First>::rank == detail::Traits<More>::rank) && ...),
                "tessera: concat takes tensors of one rank");
  const Location location = detail::place_of(first);
  return Lazy<T, detail::Traits<First>::rank>(
      lazy_concat({detail::lazy_ref<T>(first, location), detail::lazy_ref<T>(more, location)...}, axis, location));
}

/// Rows of a table: [n, ...] at indices [...] is [indices..., ...]. A row that does not exist is 0.
template <Lazily A, Lazily I>
auto gather(const A& table, const I& indices, Location location = Location::current()) {
  using T = typename detail::Traits<A>::type;
  static_assert(std::is_same_v<typename detail::Traits<I>::type, i32>, "tessera: indices are of i32");
  return Lazy<T, detail::Traits<A>::rank + detail::Traits<I>::rank - 1>(
      lazy_gather(detail::lazy_ref<T>(table, location), detail::lazy_ref<i32>(indices, location), location));
}
/// gather of the rows of a matrix: the embedding of tokens.
template <Lazily I, Lazily A>
auto embedding(const I& tokens, const A& table, Location location = Location::current()) {
  const NamedOps named("embedding");
  return gather(table, tokens, location);
}

/// [..., m, k] times [..., k, n], or [k, n] for all; the axes before the last two broadcast. Accumulated in f32 (f64 of
/// f64, i32 of i8 and u8); the result has the operands' type, but f32 of fp8, and i32 of i8 and u8.
template <Lazily A, Lazily B>
auto matmul(const A& a, const B& b, const MatmulOptions& options = {}, Location location = Location::current()) {
  using T = typename detail::Traits<A>::type;
  static_assert(std::is_same_v<T, typename detail::Traits<B>::type>,
                "tessera: tensors of different element types; cast<...>() one of them first");
  static_assert(detail::Traits<A>::rank >= 2 && detail::Traits<B>::rank >= 2,
                "tessera: matmul takes matrices, tensors of rank 2 or more; reshape a vector");
  detail::check_multiplies<T>();
  constexpr ElementType type = info(element_type<T>).bytes == 1 ? sum_type(element_type<T>) : element_type<T>;
  return Lazy<typename detail::TypeOf<type>::type, std::max(detail::Traits<A>::rank, detail::Traits<B>::rank)>(
      lazy_matmul(detail::lazy_ref<T>(a, location), detail::lazy_ref<T>(b, location), options, location));
}
template <Lazily A, Lazily W>
auto linear(const A& x, const W& w, Location location = Location::current()) {
  const NamedOps named("linear");
  return matmul(x, w, {}, location);
}
/// x [..., k] w [k, n] + bias [n]. The bias may be of f32 beside narrower operands.
template <Lazily A, Lazily W, Lazily B>
auto linear(const A& x, const W& w, const B& bias, Location location = Location::current()) {
  const NamedOps named("linear");
  const auto product = matmul(x, w, {}, location);
  const auto sum = detail::computing(product, location);
  return detail::rounded<typename detail::Traits<decltype(product)>::type>(
      detail::lazy_apply<Op::add>(location, sum, detail::computing(bias, location)), location);
}

/// exp(x) divided by its sum along the axis.
template <Lazily A>
auto softmax(const A& x, int axis = -1, Location location = Location::current()) {
  const NamedOps named("softmax");
  using T = typename detail::Traits<A>::type;
  detail::check_real<T>();
  const auto xs = detail::computing(x, location);
  if (xs.node()->extents.size() == 0) return detail::rounded<T>(xs, location);
  const auto e = exp(xs - max(xs, axis, location), location);
  return detail::rounded<T>(e / sum(e, axis, location), location);
}
/// The logarithm of softmax(x, axis), without its underflow.
template <Lazily A>
auto log_softmax(const A& x, int axis = -1, Location location = Location::current()) {
  const NamedOps named("log_softmax");
  using T = typename detail::Traits<A>::type;
  detail::check_real<T>();
  const auto xs = detail::computing(x, location);
  if (xs.node()->extents.size() == 0) return detail::rounded<T>(xs, location);
  const auto centered = xs - max(xs, axis, location);
  return detail::rounded<T>(centered - log(sum(exp(centered, location), axis, location), location), location);
}
namespace detail {
template <class A>
auto lazy_mean(const A& x, std::span<const int> axes, Location location) {
  const NamedOps named("mean");
  using T = typename Traits<A>::type;
  check_real<T>();
  const auto xs = computing(x, location);
  const auto total = lazy_reduced<Op::sum>(xs, axes, location);
  const std::int64_t results = std::max<std::int64_t>(total.node()->extents.size(), 1);
  return rounded<T>(total / static_cast<double>(xs.node()->extents.size() / results), location);
}
template <class A>
auto lazy_var(const A& x, std::span<const int> axes, Location location) {
  const NamedOps named("var");
  using T = typename Traits<A>::type;
  check_real<T>();
  const auto xs = computing(x, location);
  const auto centered = xs - lazy_mean(xs, axes, location);
  return rounded<T>(lazy_mean(centered * centered, axes, location), location);
}
}  // namespace detail

/// The mean of the elements along the axis, along several axes, or of all; the axes stay, with extent 1.
#define MOMENT(name)                                                                          \
  template <Lazily A>                                                                         \
  auto name(const A& x, int axis, Location location = Location::current()) {                  \
    return detail::lazy_##name(x, std::span(&axis, 1), location);                             \
  }                                                                                           \
  template <Lazily A, std::size_t N>                                                          \
  auto name(const A& x, const int(&axes)[N], Location location = Location::current()) {       \
    return detail::lazy_##name(x, axes, location);                                            \
  }                                                                                           \
  template <Lazily A>                                                                         \
  auto name(const A& x, Location location = Location::current()) {                            \
    return detail::lazy_##name(x, detail::axes_of_rank<detail::Traits<A>::rank>(), location); \
  }
MOMENT(mean)
/// The mean squared distance from the mean (that of a population: divided by the number of elements).
MOMENT(var)
#undef MOMENT

/// (x - mean) / sqrt(var + eps) * weight + bias along the last axis.
template <Lazily A, Lazily W, Lazily B>
auto layer_norm(const A& x, const W& weight, const B& bias, double eps = 1e-5,
                Location location = Location::current()) {
  const NamedOps named("layer_norm");
  using T = typename detail::Traits<A>::type;
  detail::check_real<T>();
  const auto xs = detail::computing(x, location);
  const auto centered = xs - mean(xs, -1, location);
  const auto scale = rsqrt(mean(centered * centered, -1, location) + eps, location);
  return detail::rounded<T>(centered * scale * detail::computing(weight, location) + detail::computing(bias, location),
                            location);
}
/// x / sqrt(mean(x^2) + eps) * weight along the last axis.
template <Lazily A, Lazily W>
auto rms_norm(const A& x, const W& weight, double eps = 1e-5, Location location = Location::current()) {
  const NamedOps named("rms_norm");
  using T = typename detail::Traits<A>::type;
  detail::check_real<T>();
  const auto xs = detail::computing(x, location);
  const auto scale = rsqrt(mean(xs * xs, -1, location) + eps, location);
  return detail::rounded<T>(xs * scale * detail::computing(weight, location), location);
}

namespace detail {
template <class A, class T>
concept LazilyOf = Lazily<A> && std::is_same_v<typename Traits<A>::type, T>;

template <class Q, class K, class V>
auto lazy_attended(const Q& q, const K& k, const V& v, LazyRef mask, LazyRef bias, const AttentionOptions& options,
                   Location location) {
  using T = typename Traits<Q>::type;
  constexpr int rank = Traits<Q>::rank;
  static_assert(std::is_same_v<T, typename Traits<K>::type> && std::is_same_v<T, typename Traits<V>::type>,
                "tessera: q, k and v have one element type; cast<...>() the others");
  static_assert(std::is_same_v<T, f32> || std::is_same_v<T, f16> || std::is_same_v<T, bf16>,
                "tessera: attention takes tensors of f32, f16 or bf16");
  static_assert(rank >= 3 && rank == Traits<K>::rank && rank == Traits<V>::rank,
                "tessera: q, k and v have one rank, of 3 or more: [..., heads, tokens, width]");
  return Lazy<T, rank>(lazy_attention(lazy_ref<T>(q, location), lazy_ref<T>(k, location), lazy_ref<T>(v, location),
                                      std::move(mask), std::move(bias), options, location));
}
}  // namespace detail

/// softmax(scale q k^T) v: q [..., heads, queries, d], k [..., key heads, keys, d], v [..., key heads, keys, e]; the
/// key heads divide the heads. Scores are never stored. A query that sees no key gets 0.
template <Lazily Q, Lazily K, Lazily V>
auto attention(const Q& q, const K& k, const V& v, const AttentionOptions& options = {},
               Location location = Location::current()) {
  return detail::lazy_attended(q, k, v, nullptr, nullptr, options, location);
}
/// The same with a mask (pred: true where a query sees a key), a bias (f32, added to the scores behind the soft cap),
/// or both, which broadcast to [..., heads, queries, keys]. They are computed in the kernel, and may be any expression.
template <Lazily Q, Lazily K, Lazily V, detail::LazilyOf<pred> M>
auto attention(const Q& q, const K& k, const V& v, const M& mask, const AttentionOptions& options = {},
               Location location = Location::current()) {
  return detail::lazy_attended(q, k, v, detail::lazy_ref<pred>(mask, location), nullptr, options, location);
}
template <Lazily Q, Lazily K, Lazily V, detail::LazilyOf<f32> B>
auto attention(const Q& q, const K& k, const V& v, const B& bias, const AttentionOptions& options = {},
               Location location = Location::current()) {
  return detail::lazy_attended(q, k, v, nullptr, detail::lazy_ref<f32>(bias, location), options, location);
}
template <Lazily Q, Lazily K, Lazily V, detail::LazilyOf<pred> M, detail::LazilyOf<f32> B>
auto attention(const Q& q, const K& k, const V& v, const M& mask, const B& bias, const AttentionOptions& options = {},
               Location location = Location::current()) {
  return detail::lazy_attended(q, k, v, detail::lazy_ref<pred>(mask, location), detail::lazy_ref<f32>(bias, location),
                               options, location);
}

/// Independent random numbers in (0, 1): element i is number i of the stream `key` (Philox 4x32-10), whatever is fused
/// with it, and on any device.
template <std::size_t N>
Lazy<f32, static_cast<int>(N)> random_uniform(const Device& device, std::int64_t key, const std::int64_t (&extents)[N],
                                              Location location = Location::current()) {
  constexpr int rank = static_cast<int>(N);
  const NamedOps named("random_uniform");
  LazyRef index = lazy_scalar(ElementType::i64, cell_of(std::int64_t{0}), location);
  std::int64_t stride = 1;
  for (int axis = rank; axis-- > 0; stride *= extents[axis]) {
    const LazyRef along = lazy_cast(ElementType::i64, lazy_iota(device, extents, axis, location), true, location);
    const LazyRef scaled =
        lazy_elementwise(Op::mul, {along, lazy_scalar(ElementType::i64, cell_of(stride), location)}, location);
    index = lazy_elementwise(Op::add, {index, scaled}, location);
  }
  return Lazy<f32, rank>(
      lazy_elementwise(Op::random_uniform, {lazy_scalar(ElementType::i64, cell_of(key), location), index}, location));
}

// Fluent forms.
template <class T, int R>
template <Lazily W>
auto Lazy<T, R>::matmul(const W& w, const MatmulOptions& options, Location location) const {
  return internal::matmul(*this, w, options, location);
}
template <class T, int R>
template <Lazily W>
auto Lazy<T, R>::linear(const W& w, Location location) const {
  return internal::linear(*this, w, location);
}
template <class T, int R>
template <Lazily W, Lazily B>
auto Lazy<T, R>::linear(const W& w, const B& bias, Location location) const {
  return internal::linear(*this, w, bias, location);
}
template <class T, int R>
template <Lazily K, Lazily V>
auto Lazy<T, R>::attention(const K& k, const V& v, const AttentionOptions& options, Location location) const {
  return internal::attention(*this, k, v, options, location);
}
template <class T, int R>
template <Lazily K, Lazily V, Lazily M>
auto Lazy<T, R>::attention(const K& k, const V& v, const M& mask_or_bias, const AttentionOptions& options,
                           Location location) const {
  return internal::attention(*this, k, v, mask_or_bias, options, location);
}
template <class T, int R>
template <Lazily W>
auto Lazy<T, R>::rms_norm(const W& weight, double eps, Location location) const {
  return internal::rms_norm(*this, weight, eps, location);
}
template <class T, int R>
template <Lazily W, Lazily B>
auto Lazy<T, R>::layer_norm(const W& weight, const B& bias, double eps, Location location) const {
  return internal::layer_norm(*this, weight, bias, eps, location);
}
#define ALONG_AXIS(name)                                           \
  template <class T, int R>                                        \
  Lazy<T, R> Lazy<T, R>::name(int axis, Location location) const { \
    return internal::name(*this, axis, location);                  \
  }
ALONG_AXIS(softmax)
ALONG_AXIS(log_softmax)
#undef ALONG_AXIS
#define MOMENT(name)                                                          \
  template <class T, int R>                                                   \
  Lazy<T, R> Lazy<T, R>::name(int axis, Location location) const {            \
    return internal::name(*this, axis, location);                             \
  }                                                                           \
  template <class T, int R>                                                   \
  template <std::size_t N>                                                    \
  Lazy<T, R> Lazy<T, R>::name(const int(&axes)[N], Location location) const { \
    return internal::name(*this, axes, location);                             \
  }                                                                           \
  template <class T, int R>                                                   \
  Lazy<T, R> Lazy<T, R>::name(Location location) const {                      \
    return internal::name(*this, location);                                   \
  }
MOMENT(mean) MOMENT(var)
#undef MOMENT

}  // namespace internal
}  // namespace tessera
