// Lazy<T, R>: an expression of whole tensors, with its element type and rank in the C++ type.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <initializer_list>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/api/tensor.hpp"
#include "tessera/dsl/sort.hpp"
#include "tessera/dsl/tile.hpp"
#include "tessera/tensors/lazy_node.hpp"
#include "tessera/tensors/run.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

template <class T, int R>
class Lazy;

namespace detail {
template <class A>
struct LazyTraits {
  static constexpr bool is_lazy = false, is_tensor = false;
};
template <class T, int R>
struct LazyTraits<Lazy<T, R>> {
  static constexpr bool is_lazy = true, is_tensor = false;
  using type = T;
  static constexpr int rank = R;
};
template <class T, int R>
struct LazyTraits<Tensor<T, R>> {
  static constexpr bool is_lazy = false, is_tensor = true;
  using type = T;
  static constexpr int rank = R;
};
template <class A>
using Traits = LazyTraits<std::remove_cvref_t<A>>;
}  // namespace detail

/// A Lazy, or a Tensor, which stands for `tile(tensor)`.
template <class A>
concept Lazily = detail::Traits<A>::is_lazy || detail::Traits<A>::is_tensor;
/// An operand of an elementwise function: one of these, or a number, which takes the other operand's type.
template <class A>
concept LazyOperand = Lazily<A> || Literal<std::remove_cvref_t<A>>;

namespace detail {
template <class... A>
inline constexpr bool any_lazily = (Lazily<A> || ...);
template <class... A>
inline constexpr bool any_lazy = (Traits<A>::is_lazy || ...);

// The element type of the first operand that is no number.
template <class A, class... More>
struct LazyElement : LazyElement<More...> {};
template <Lazily A, class... More>
struct LazyElement<A, More...> {
  using type = typename Traits<A>::type;
};
template <class... A>
using lazy_element = typename LazyElement<A...>::type;

template <class A>
constexpr int lazy_rank() {
  if constexpr (Lazily<A>)
    return Traits<A>::rank;
  else
    return 0;
}

/// The node of an operand; a number becomes a literal of type T.
template <class T, class A>
LazyRef lazy_ref(const A& a, Location location) {
  if constexpr (Traits<A>::is_lazy) {
    return a.node();
  } else if constexpr (Traits<A>::is_tensor) {
    return lazy_input(a.any(), location);
  } else {
    static_assert(std::integral<A> || info(element_type<T>).kind == ElementKind::real,
                  "tessera: a floating-point number beside a tensor of integers; cast<f32>() the tensor first");
    return lazy_literal(element_type<T>, Number(a), location);
  }
}

// The type that an op on elements of T yields.
template <Op op, class T>
constexpr ElementType lazy_result() {
  constexpr ElementType operand = element_type<T>, computing = computing_type(operand);
  constexpr ElementType result = result_type(op, computing);
  return result == computing ? operand : result;
}
template <Op op, class T>
using lazy_result_t = typename TypeOf<lazy_result<op, T>()>::type;

template <Op op, class T, class... A>
constexpr bool check_lazy_operands() {
  constexpr auto same = []<class B>() {
    if constexpr (Lazily<B>)
      return std::is_same_v<typename Traits<B>::type, T>;
    else
      return true;
  };
  constexpr bool alike = (same.template operator()<A>() && ...);
  static_assert(alike, "tessera: tensors of different element types; cast<...>() one of them first");
  static_assert(!alike || accepts(op, computing_type(element_type<T>)),
                "tessera: this function does not take tensors of this element type; cast<...>() it first (docs/ops.md "
                "lists the types; integers of 8 and 16 bits are only stored)");
  return alike && accepts(op, computing_type(element_type<T>));
}

template <Op op, class... A>
auto lazy_apply(Location location, const A&... a) {
  using T = lazy_element<A...>;
  constexpr int rank = std::max({lazy_rank<A>()...});
  if constexpr (check_lazy_operands<op, T, A...>())
    return Lazy<lazy_result_t<op, T>, rank>(lazy_elementwise(op, {lazy_ref<T>(a, location)...}, location));
  else
    return Lazy<T, rank>();
}
// All axes, the last one first.
template <int R>
constexpr std::array<int, R> axes_of_rank() {
  std::array<int, R> axes{};
  for (int i = 0; i < R; ++i) axes[static_cast<std::size_t>(i)] = R - 1 - i;
  return axes;
}
template <Op op, class A>
auto lazy_reduced(const A& a, std::span<const int> axes, Location location) {
  using T = typename Traits<A>::type;
  check_lazy_operands<op, T, A>();
  // Results along one axis are rounded only after those along all.
  LazyRef x = lazy_cast(computing_type(element_type<T>), lazy_ref<T>(a, location), false, location);
  for (int axis : axes) x = lazy_reduce(op, x, axis, location);
  return Lazy<T, Traits<A>::rank>(lazy_cast(element_type<T>, std::move(x), false, location));
}
}  // namespace detail

/// A tensor of element type T and rank R that has not been computed: an expression of tensors. It is a value; copies
/// are the same expression, and what is used twice is computed once, or again where that moves fewer bytes. run()
/// computes it by a few kernels. It keeps its tensors' memory alive, except the user's own, which must exist until
/// run() has returned. Any number of threads may use one.
///
/// Values of bf16, f16 and fp8 are computed in f32, and rounded where they are stored: in a tensor, by a cast, and as
/// operands of matmul and attention. Which intermediate results are stored is up to fusion.
template <class T, int R>
class Lazy {
  static_assert(Stored<T>, "tessera: a Lazy has an element type that tensors hold");

 public:
  using type = T;
  static constexpr int rank = R;

  /// Empty; any use throws Error.
  Lazy() = default;
  Lazy(const Tensor<T, R>& tensor, Location location = Location::current()) requires(R > 0)
      : node_(lazy_input(tensor.any(), location)) {}
  explicit Lazy(LazyRef node) : node_(std::move(node)) {}

  const LazyRef& node() const {
    if (!node_) throw Error("an empty Lazy is used; assign an expression to it");
    return node_;
  }
  /// The node, or null.
  const LazyRef& ref() const { return node_; }
  /// The device of its tensors. Error if there is none.
  const Device& device() const {
    if (!node()->device) throw Error("an expression of numbers alone has no device");
    return *node()->device;
  }
  std::array<std::int64_t, R> extents() const {
    std::array<std::int64_t, R> extents{};
    for (int axis = 0; axis < R; ++axis) extents[static_cast<std::size_t>(axis)] = node()->extents[axis];
    return extents;
  }
  std::int64_t extent(int axis) const { return node()->extents[static_cast<int>(detail::axis_of(axis, R))]; }

  /// Computes it into a new, dense tensor. Asynchronous where the device is. Throws Error if it has no device: none of
  /// its tensors does.
  Tensor<T, R> run() const { return Tensor<T, R>(run_lazy({node()}).front()); }
  Tensor<T, R> run(const Stream& stream) const { return Tensor<T, R>(run_lazy({node()}, &stream).front()); }
  /// The same into a tensor of these extents, of any strides. It may share memory with the inputs: all of them are read
  /// as if before it is written.
  void run(const Tensor<T, R>& out) const { run_lazy_into(node(), out.any()); }
  void run(const Tensor<T, R>& out, const Stream& stream) const { run_lazy_into(node(), out.any(), &stream); }
  template <class U, int S>
  void run(const Tensor<U, S>&) const {
    static_assert(
        std::is_void_v<U>,
        "tessera: run(out) takes a Tensor of the expression's element type and rank; cast<...>() or reshape() "
        "the expression first");
  }
  /// The kernels that run() launches: what each computes, what was fused, and what was not and why.
  std::string describe() const { return describe_lazy({node()}); }
  std::string describe(Arch arch) const { return describe_lazy({node()}, arch); }
  /// The same with bytes, operations, and the predicted and measured time of each. It runs them.
  std::string explain() const { return explain_lazy({node()}); }
  /// The graph of tensor ops, kernel by kernel, with the tiles of each.
  std::string graph() const { return lazy_graph({node()}); }
  std::string graph(Arch arch) const { return lazy_graph({node()}, arch); }
  /// The CUDA C++ of all kernels on GPUs of an architecture. Needs neither NVRTC nor a GPU.
  std::string cuda_source(Arch arch) const { return lazy_cuda_source({node()}, arch); }
  /// The kernels themselves, as traced: graphs of tile ops.
  std::vector<std::shared_ptr<const Executable>> kernels() const { return lazy_kernels({node()}); }
  std::vector<std::shared_ptr<const Executable>> kernels(Arch arch) const { return lazy_kernels({node()}, arch); }

  // Methods are documented at the functions of the same names.
#define UNARY(name, ...) \
  auto name(Location location = Location::current()) const { return detail::lazy_apply<Op::name>(location, *this); }
#define BINARY(name, ...)                                                \
  template <LazyOperand A>                                               \
  auto name(const A& a, Location location = Location::current()) const { \
    return detail::lazy_apply<Op::name>(location, *this, a);             \
  }
#define TERNARY(name, ...)                                                           \
  template <LazyOperand A, LazyOperand B>                                            \
  auto name(const A& a, const B& b, Location location = Location::current()) const { \
    return detail::lazy_apply<Op::name>(location, *this, a, b);                      \
  }
#define REDUCTION(name, ...)                                                           \
  auto name(int axis, Location location = Location::current()) const {                 \
    return detail::lazy_reduced<Op::name>(*this, std::span(&axis, 1), location);       \
  }                                                                                    \
  template <std::size_t N>                                                             \
  auto name(const int(&axes)[N], Location location = Location::current()) const {      \
    return detail::lazy_reduced<Op::name>(*this, axes, location);                      \
  }                                                                                    \
  auto name(Location location = Location::current()) const {                           \
    return detail::lazy_reduced<Op::name>(*this, detail::axes_of_rank<R>(), location); \
  }
#define SCAN(name, ...)                                                                          \
  auto name(int axis, ScanOptions options = {}, Location location = Location::current()) const { \
    return Lazy<T, R>(lazy_scan(Op::name, node(), axis, options, location));                     \
  }
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"

  /// Converts the elements. To a narrower type it rounds, fused or not.
  template <Stored U>
  Lazy<U, R> cast(Location location = Location::current()) const {
    return Lazy<U, R>(lazy_cast(element_type<U>, node(), true, location));
  }
  /// Applies an elementwise function of the language of kernels, one without captures: `x.map([](auto e) { return
  /// tanh(e) * 2; })`. It takes and returns tiles of T, or of f32 where T is narrower. `name`, a string literal, is
  /// its name in describe() and in that of the kernel.
  template <class F>
  Lazy<T, R> map(const F& function, std::string_view name = "map", Location location = Location::current()) const;

  template <std::size_t N>
  Lazy<T, static_cast<int>(N)> reshape(const std::int64_t (&extents)[N],
                                       Location location = Location::current()) const {
    return Lazy<T, static_cast<int>(N)>(lazy_reshape(node(), extents, location));
  }
  template <std::size_t N>
  Lazy permute(const int (&order)[N], Location location = Location::current()) const {
    static_assert(N == R, "tessera: permute must name each axis of the tensor once");
    return Lazy(lazy_permute(node(), order, location));
  }
  /// Exchanges the last two axes.
  Lazy transpose(Location location = Location::current()) const {
    static_assert(R >= 2, "tessera: transpose takes a tensor of rank 2 or more");
    int order[R] = {};
    for (int axis = 0; axis < R; ++axis) order[axis] = axis;
    if constexpr (R >= 2) std::swap(order[R - 1], order[R - 2]);
    return Lazy(lazy_permute(node(), order, location));
  }
  /// Elements start, start + step, ... along an axis, `extent` of them, all of which must exist.
  Lazy slice(int axis, std::int64_t start, std::int64_t extent, std::int64_t step = 1,
             Location location = Location::current()) const {
    return Lazy(lazy_slice(node(), axis, start, extent, step, location));
  }
  template <std::size_t N>
  Lazy<T, static_cast<int>(N)> broadcast(const std::int64_t (&extents)[N],
                                         Location location = Location::current()) const {
    static_assert(static_cast<int>(N) >= R, "tessera: broadcasting keeps all axes, and may add axes before them");
    return Lazy<T, static_cast<int>(N)>(lazy_broadcast(node(), extents, location));
  }
  /// Removes an axis of extent 1.
  auto squeeze(int axis, Location location = Location::current()) const {
    static_assert(R >= 2, "tessera: squeeze leaves at least one axis");
    std::int64_t extents[R >= 2 ? R - 1 : 1] = {};
    const int removed = axis < 0 ? axis + R : axis;
    if (removed < 0 || removed >= R || node()->extents[removed] != 1)
      throw Error(std::string(location.file) + ":" + std::to_string(location.line) + ": squeeze: axis " +
                  std::to_string(axis) + " of " + to_string(node()->extents) + " is not of extent 1");
    for (int from = 0, to = 0; from < R; ++from)
      if (from != removed) extents[to++] = node()->extents[from];
    return Lazy<T, (R >= 2 ? R - 1 : 1)>(lazy_reshape(node(), extents, location));
  }

  // Fluent forms of functions.hpp and of other operands.
  template <Lazily W>
  auto matmul(const W& w, const MatmulOptions& options = {}, Location location = Location::current()) const;
  template <Lazily W>
  auto linear(const W& w, Location location = Location::current()) const;
  template <Lazily W, Lazily B>
  auto linear(const W& w, const B& bias, Location location = Location::current()) const;
  template <Lazily K, Lazily V>
  auto attention(const K& k, const V& v, const AttentionOptions& options = {},
                 Location location = Location::current()) const;
  template <Lazily K, Lazily V, Lazily M>
  auto attention(const K& k, const V& v, const M& mask_or_bias, const AttentionOptions& options = {},
                 Location location = Location::current()) const;
  template <Lazily W>
  auto rms_norm(const W& weight, double eps = 1e-5, Location location = Location::current()) const;
  template <Lazily W, Lazily B>
  auto layer_norm(const W& weight, const B& bias, double eps = 1e-5, Location location = Location::current()) const;
  Lazy softmax(int axis = -1, Location location = Location::current()) const;
  Lazy log_softmax(int axis = -1, Location location = Location::current()) const;
#define MOMENT(name)                                                             \
  Lazy name(int axis, Location location = Location::current()) const;            \
  template <std::size_t N>                                                       \
  Lazy name(const int(&axes)[N], Location location = Location::current()) const; \
  Lazy name(Location location = Location::current()) const;
  MOMENT(mean)
  MOMENT(var)
#undef MOMENT
  Lazy gelu(Location location = Location::current()) const;
  Lazy gelu_tanh(Location location = Location::current()) const;
  Lazy silu(Location location = Location::current()) const;
  Lazy sigmoid(Location location = Location::current()) const;
  Lazy relu(Location location = Location::current()) const;
  Lazy softplus(Location location = Location::current()) const;
  Lazy sort(int axis, SortOptions options = {}, Location location = Location::current()) const {
    return Lazy(lazy_sort(TensorOp::sort, node(), axis, options, extent_of(axis), location));
  }
  Lazy<i32, R> argsort(int axis, SortOptions options = {}, Location location = Location::current()) const {
    return Lazy<i32, R>(lazy_sort(TensorOp::argsort, node(), axis, options, extent_of(axis), location));
  }
  /// The k largest along an axis, in descending order, and their indices; {.smallest = true}: the k smallest, in
  /// ascending order.
  std::pair<Lazy, Lazy<i32, R>> top_k(std::int64_t k, int axis, TopKOptions options = {},
                                      Location location = Location::current()) const {
    const NamedOps named("top_k");
    const SortOptions order{.descending = !options.smallest};
    return {Lazy(lazy_sort(TensorOp::sort, node(), axis, order, k, location)),
            Lazy<i32, R>(lazy_sort(TensorOp::argsort, node(), axis, order, k, location))};
  }
  /// The lowest index of the largest, or of the smallest, along an axis.
  Lazy<i32, R> argmax(int axis, Location location = Location::current()) const {
    return Lazy<i32, R>(lazy_argmax(node(), axis, location));
  }
  Lazy<i32, R> argmin(int axis, Location location = Location::current()) const {
    const NamedOps named("argmin");
    static_assert(info(element_type<T>).kind == ElementKind::real,
                  "tessera: argmin takes floating-point numbers; cast<f32>() the tensor first");
    return Lazy<i32, R>(lazy_argmax(lazy_elementwise(Op::neg, {node()}, location), axis, location));
  }
  /// Inserts an axis of one element.
  auto expand_dims(int axis, Location location = Location::current()) const {
    static_assert(R < max_rank, "tessera: a tensor has at most 6 axes");
    std::int64_t extents[R + 1] = {};
    const int inserted = axis < 0 ? axis + R + 1 : axis;
    if (inserted < 0 || inserted > R)
      throw Error(std::string(location.file) + ":" + std::to_string(location.line) + ": expand_dims: no place " +
                  std::to_string(axis) + " among the axes of " + to_string(node()->extents));
    for (int to = 0, from = 0; to <= R; ++to) extents[to] = to == inserted ? 1 : node()->extents[from++];
    return Lazy<T, R + 1>(lazy_reshape(node(), extents, location));
  }
  /// The elements along an axis in reverse.
  Lazy flip(int axis, Location location = Location::current()) const {
    const NamedOps named("flip");
    const std::int64_t count = extent_of(axis);
    return Lazy(lazy_slice(node(), axis, std::max<std::int64_t>(count - 1, 0), count, count > 1 ? -1 : 1, location));
  }

 private:
  std::int64_t extent_of(int axis) const { return axis >= -R && axis < R ? extent(axis) : 0; }
  LazyRef node_;
};
template <class T, int R>
Lazy(const Tensor<T, R>&) -> Lazy<T, R>;

/// A tensor as an expression: `tile(x).linear(w, b).gelu().run()`.
template <class T, int R>
Lazy<T, R> tile(const Tensor<T, R>& tensor, Location location = Location::current()) {
  return Lazy<T, R>(tensor, location);
}
template <class T, int R>
Lazy<T, R> tile(const Lazy<T, R>& expression) {
  return expression;
}
/// A tensor of one number.
template <Stored T, std::size_t N>
Lazy<T, static_cast<int>(N)> full(const Device& device, const std::int64_t (&extents)[N], Number number,
                                  Location location = Location::current()) {
  return Lazy<T, static_cast<int>(N)>(lazy_full(device, element_type<T>, number, extents, location));
}
/// A number that may differ from run to run: kernels take it as an argument, where a C++ number in an expression is
/// part of their text.
template <Computing T>
Lazy<T, 0> scalar(T value, Location location = Location::current()) {
  return Lazy<T, 0>(lazy_scalar(element_type<T>, cell_of(value), location));
}
/// Each element's position along an axis.
template <std::size_t N>
Lazy<i32, static_cast<int>(N)> iota(const Device& device, const std::int64_t (&extents)[N], int axis,
                                    Location location = Location::current()) {
  return Lazy<i32, static_cast<int>(N)>(lazy_iota(device, extents, axis, location));
}
/// Several results in one run, which share what they have in common: `auto [m, v] = run(mean, var);`
template <class... T, int... R>
std::tuple<Tensor<T, R>...> run(const Lazy<T, R>&... x) {
  const std::vector<detail::AnyTensor> results = run_lazy({x.node()...});
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<Tensor<T, R>...>(Tensor<T, R>(results[I])...);
  }
  (std::index_sequence_for<Lazy<T, R>...>());
}
/// The kernels that run(x...) launches, as text.
template <class... T, int... R>
std::string describe(const Lazy<T, R>&... x) {
  return describe_lazy({x.node()...});
}

// The ops of ops.def as functions. At least one operand is a Lazy or a Tensor.
#define UNARY(name, ...)                                           \
  template <Lazily A>                                              \
  auto name(const A& a, Location location = Location::current()) { \
    return detail::lazy_apply<Op::name>(location, a);              \
  }
#define BINARY(name, ...)                                                      \
  template <LazyOperand A, LazyOperand B>                                      \
  requires detail::any_lazily<A, B>                                            \
  auto name(const A& a, const B& b, Location location = Location::current()) { \
    return detail::lazy_apply<Op::name>(location, a, b);                       \
  }
#define TERNARY(name, ...)                                                                 \
  template <LazyOperand A, LazyOperand B, LazyOperand C>                                   \
  requires detail::any_lazily<A, B, C>                                                     \
  auto name(const A& a, const B& b, const C& c, Location location = Location::current()) { \
    return detail::lazy_apply<Op::name>(location, a, b, c);                                \
  }
#define REDUCTION(name, ...)                                                                             \
  template <Lazily A>                                                                                    \
  auto name(const A& a, int axis, Location location = Location::current()) {                             \
    return detail::lazy_reduced<Op::name>(a, std::span(&axis, 1), location);                             \
  }                                                                                                      \
  template <Lazily A, std::size_t N>                                                                     \
  auto name(const A& a, const int(&axes)[N], Location location = Location::current()) {                  \
    return detail::lazy_reduced<Op::name>(a, axes, location);                                            \
  }                                                                                                      \
  template <Lazily A>                                                                                    \
  auto name(const A& a, Location location = Location::current()) {                                       \
    return detail::lazy_reduced<Op::name>(a, detail::axes_of_rank<detail::Traits<A>::rank>(), location); \
  }
#define SCAN(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"

namespace detail {
// The place of an operator: C++ gives it none, so it is that of the Lazy operand that was made last.
template <class A>
Location place_of(const A& a) {
  if constexpr (Traits<A>::is_lazy)
    return a.node()->location;
  else
    return {};
}
template <class A, class B>
Location place_of(const A& a, const B& b) {
  if constexpr (Traits<A>::is_lazy && Traits<B>::is_lazy)
    return std::max(a.node()->location, b.node()->location, [](Location x, Location y) { return x.line < y.line; });
  else if constexpr (Traits<A>::is_lazy)
    return a.node()->location;
  else
    return place_of(b);
}
}  // namespace detail

// Operators, where one operand is a Lazy. An error names the places of the operands.
#define OPERATOR(symbol, real_op, integer_op)                                 \
  template <LazyOperand A, LazyOperand B>                                     \
  requires detail::any_lazy<A, B>                                             \
  auto operator symbol(const A& a, const B& b) {                              \
    using T = detail::lazy_element<A, B>;                                     \
    constexpr bool is_real = info(element_type<T>).kind == ElementKind::real; \
    constexpr Op op = is_real ? Op::real_op : Op::integer_op;                 \
    return detail::lazy_apply<op>(detail::place_of(a, b), a, b);              \
  }
// clang-format off
OPERATOR(+, add, add) OPERATOR(-, sub, sub) OPERATOR(*, mul, mul) OPERATOR(/, div, floor_div)
OPERATOR(<, less, less) OPERATOR(<=, less_equal, less_equal) OPERATOR(>, greater, greater)
OPERATOR(>=, greater_equal, greater_equal) OPERATOR(==, equal, equal) OPERATOR(!=, not_equal, not_equal)
OPERATOR(%, modulo, modulo) OPERATOR(^, bitwise_xor, bitwise_xor)
OPERATOR(<<, shift_left, shift_left) OPERATOR(>>, shift_right, shift_right)
// clang-format on
#undef OPERATOR
                    template <LazyOperand A, LazyOperand B>
requires detail::any_lazy<A, B>
auto operator&(const A& a, const B& b) {
  using T = detail::lazy_element<A, B>;
  return detail::lazy_apply < std::is_same_v<T, pred> ? Op::logical_and
                                                      : Op::bitwise_and > (detail::place_of(a, b), a, b);
}
template <LazyOperand A, LazyOperand B>
requires detail::any_lazy<A, B>
auto operator|(const A& a, const B& b) {
  using T = detail::lazy_element<A, B>;
  return detail::lazy_apply < std::is_same_v<T, pred> ? Op::logical_or
                                                      : Op::bitwise_or > (detail::place_of(a, b), a, b);
}
// Operators without a Lazy: tensors have none.
#define OF_TENSORS(symbol)                                                                                     \
  template <class T, int R, LazyOperand B>                                                                     \
  requires(!detail::any_lazy<B>) auto operator symbol(const Tensor<T, R>& a, const B&) {                       \
    static_assert(std::is_void_v<T>,                                                                           \
                  "tessera: write tile(a) for a tensor in an expression: (tile(a) + b).run() computes a sum"); \
    return Lazy<T, R>(a);                                                                                      \
  }
// clang-format off
OF_TENSORS(+) OF_TENSORS(-) OF_TENSORS(*) OF_TENSORS(/) OF_TENSORS(%) OF_TENSORS(<) OF_TENSORS(<=) OF_TENSORS(>)
OF_TENSORS(>=)
// clang-format on
#undef OF_TENSORS
    template <class T, int R>
    auto operator-(const Tensor<T, R>& a) {
  static_assert(std::is_void_v<T>, "tessera: write tile(a) for a tensor in an expression: -tile(a)");
  return Lazy<T, R>(a);
}
template <class T, int R>
auto operator-(const Lazy<T, R>& a) {
  return detail::lazy_apply<Op::neg>(a.node()->location, a);
}
template <class T, int R>
auto operator!(const Lazy<T, R>& a) {
  return detail::lazy_apply<Op::logical_not>(a.node()->location, a);
}
template <class T, int R>
auto operator~(const Lazy<T, R>& a) {
  return detail::lazy_apply<Op::bitwise_not>(a.node()->location, a);
}

}  // namespace internal
}  // namespace tessera
