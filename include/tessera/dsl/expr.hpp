// Elementwise expressions as C++ types: the compiler checks element type and rank, tracing checks the rest.
//
// An expression is a value. Operands are held by value and leaves are handles of nodes, so an expression can be stored,
// copied and returned; lowering it twice yields the same node. The templates stay thin: each lowers its operands and
// makes one call of Trace::apply.
#pragma once
#include <algorithm>
#include <utility>

#include "tessera/dsl/trace.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

template <Element T, int R>
struct Refused;

struct ExprTag {
  /// A tile has no truth value in C++, because the kernel is traced before any tile has a value.
  template <class Bool>
  requires std::same_as<Bool, bool>
  explicit operator Bool() const {
    static_assert(
        !std::same_as<Bool, bool>,
        "tessera: a tile has no truth value in C++; use where(condition, a, b) or if_(condition, ...), and for "
        "loops for (Index i : range(n))");
    return false;
  }
  template <class I>
  auto operator[](const I&) const {
    static_assert(std::is_void_v<I>,
                  "tessera: a tile has no [ ]: slice(x, axis, first, count) and extract(x, {i, j}, {m, n}) are parts "
                  "of it, item(x) is the only element, and where(condition, a, x) has other values in some places");
    return Refused<std::conditional_t<std::is_void_v<I>, I, f32>, 0>();
  }
};

/// A value in a kernel: a Tile, a Var, or an expression of these.
template <class E>
concept TileExpr = std::is_base_of_v<ExprTag, std::remove_cvref_t<E>>;
/// A C++ number. It includes bool and character types, which Number rejects with a message.
template <class S>
concept Literal = std::integral<S> || std::floating_point<S>;
/// An operand of an op: a value in a kernel, or a C++ number.
template <class A>
concept Operand = TileExpr<A> || Literal<A>;

template <Element T_, int R_>
struct Leaf : ExprTag {
  using type = T_;
  static constexpr int rank = R_;
  Handle value;
  explicit Leaf(Handle handle) : value(handle) {}
  Handle lower(Trace&, Location) const { return value; }
};

template <Element T_>
struct LiteralExpr : ExprTag {
  using type = T_;
  static constexpr int rank = 0;
  Number value;
  explicit LiteralExpr(Number number) : value(number) {}
  Handle lower(Trace& trace, Location location) const { return trace.literal(element_type<T_>, value, location); }
};

/// The operands of an op. With std::tuple and std::apply, kernels of many ops spent three fifths of clang's frontend
/// time here.
template <std::size_t, class A>
struct OperandAt {
  A operand;
};
template <class Indices, class... A>
struct OperandList;
template <std::size_t... I, class... A>
struct OperandList<std::index_sequence<I...>, A...> : OperandAt<I, A>... {
  Handle apply(Op op, ElementType type, Trace& trace, Location location) const {
    return trace.apply(op, type, {OperandAt<I, A>::operand.lower(trace, location)...}, location);
  }
  Handle custom(const CustomFunction& function, Trace& trace, Location location) const {
    return trace.custom(function, {OperandAt<I, A>::operand.lower(trace, location)...}, location);
  }
};

template <Op op, Element T_, int R_, class... A>
struct Apply : ExprTag {
  using type = T_;
  static constexpr int rank = R_;
  OperandList<std::index_sequence_for<A...>, A...> operands;
  explicit Apply(A... operand) : operands{{operand}...} {}
  Handle lower(Trace& trace, Location location) const { return operands.apply(op, element_type<T_>, trace, location); }
};

/// The result of a call that a static_assert has rejected. It is an expression, so no further error follows.
template <Element T_, int R_>
struct Refused : ExprTag {
  using type = T_;
  static constexpr int rank = R_;
  static constexpr bool refused = true;
  Handle lower(Trace&, Location) const { return {}; }
  template <class A>
  Refused& operator=(const A&) {
    return *this;
  }
};
template <class A>
inline constexpr bool is_refused = requires { A::refused; };

namespace detail {

// The element type of the first tile; for numbers alone f32 if one is floating-point, else i32.
template <class A, class... More>
struct CommonElement {
  using type = typename A::type;
};
template <Literal A, class B, class... More>
struct CommonElement<A, B, More...> : CommonElement<B, More..., A> {};
template <Literal A, Literal B, Literal... More>
struct CommonElement<A, B, More...> {
  static constexpr bool real = std::floating_point<A> || std::floating_point<B> || (std::floating_point<More> || ...);
  using type = std::conditional_t<real, f32, i32>;
};
template <class... A>
using common_element = typename CommonElement<A...>::type;

template <class A>
constexpr int rank_of() {
  if constexpr (TileExpr<A>)
    return A::rank;
  else
    return 0;
}

// Can A be an operand of element type T?
template <Element T, Operand A>
constexpr bool fits() {
  if constexpr (TileExpr<A>)
    return std::is_same_v<typename A::type, T> && !is_refused<A>;
  else
    return std::integral<A> || info(element_type<T>).kind == ElementKind::real;
}

// An operand as an expression of element type T; anything else fails here, with one message.
template <Element T, Operand A>
auto operand(const A& a) {
  if constexpr (TileExpr<A>) {
    static_assert(is_refused<A> || std::is_same_v<typename A::type, T>,
                  "tessera: the operands have different element types; cast<T>(x) one of them");
    if constexpr (requires { a.leaf(); })
      return a.leaf();
    else
      return a;
  } else {
    static_assert(std::integral<A> || info(element_type<T>).kind == ElementKind::real,
                  "tessera: a floating literal meets an integer tile; write an integer, or cast<f32> the tile");
    return LiteralExpr<T>(a);
  }
}

template <Op op, Element T>
constexpr bool check_op() {
  if constexpr (info(op).operands == Operands::logical)
    static_assert(accepts(op, element_type<T>),
                  "tessera: logical ops take pred tiles, the results of comparisons; bitwise ops take integers");
  else if constexpr (std::is_same_v<T, pred>)
    static_assert(accepts(op, element_type<T>),
                  "tessera: a pred is not a number: cast<i32>(p) is 0 or 1, and & | ^ ! are its operators");
  else if constexpr (!info(element_type<T>).computes)
    static_assert(accepts(op, element_type<T>),
                  "tessera: storage types and pred have no arithmetic; cast<f32>(x) or cast<i32>(x) first");
  else if constexpr (info(op).operands == Operands::real)
    static_assert(accepts(op, element_type<T>), "tessera: this op takes f32 or f64; cast<f32>(x) first");
  else if constexpr (info(op).operands == Operands::single)
    static_assert(accepts(op, element_type<T>), "tessera: this op takes f32; cast<f32>(x) first");
  else if constexpr (info(op).operands == Operands::index)
    static_assert(accepts(op, element_type<T>), "tessera: this op takes i64; cast<i64>(x) first");
  else if constexpr (op == Op::modulo || op == Op::floor_div || op == Op::cdiv)
    static_assert(accepts(op, element_type<T>),
                  "tessera: this op takes integers; the remainder of reals is a - b * floor(a / b), and floor(a / b) "
                  "and ceil(a / b) are integer quotients");
  else
    static_assert(accepts(op, element_type<T>), "tessera: this op takes integers; bitcast<i32>(x) has the bits of an f32");
  return accepts(op, element_type<T>);
}

// The op applied to operands x, each made from the corresponding type in A. If an operand or the op itself was
// rejected, the result has the type that the author probably meant, so that no further error follows.
template <Op op, Element T, int R, class... A, class... X>
auto applied(const X&... x) {
  if constexpr ((fits<T, A>() && ...)) {
    if constexpr (check_op<op, T>()) {
      using Result = typename TypeOf<result_type(op, element_type<T>)>::type;
      return Apply<op, Result, R, X...>(x...);
    } else if constexpr (info(op).operands == Operands::real || info(op).operands == Operands::single) {
      return Refused<f32, R>();
    } else {
      return Refused<T, R>();
    }
  } else {
    return Refused<T, R>();
  }
}

template <Op op, TileExpr A>
auto unary(const A& a) {
  using T = typename A::type;
  return applied<op, T, A::rank, A>(operand<T>(a));
}

template <Op op, Operand A, Operand B>
auto binary(const A& a, const B& b) {
  using T = common_element<A, B>;
  return applied<op, T, std::max(rank_of<A>(), rank_of<B>()), A, B>(operand<T>(a), operand<T>(b));
}

template <Op op, Operand A, Operand B, Operand C>
auto ternary(const A& a, const B& b, const C& c) {
  using T = common_element<A, B, C>;
  constexpr int rank = std::max({rank_of<A>(), rank_of<B>(), rank_of<C>()});
  return applied<op, T, rank, A, B, C>(operand<T>(a), operand<T>(b), operand<T>(c));
}

}  // namespace detail

template <class A, class B>
concept Operands2 = Operand<A> && Operand<B> &&(TileExpr<A> || TileExpr<B>);
template <class A, class B, class C>
concept Operands3 = Operand<A> && Operand<B> && Operand<C> &&(TileExpr<A> || TileExpr<B> || TileExpr<C>);

#define UNARY(name, ...)               \
  template <TileExpr A>                \
  auto name(const A& a) {              \
    return detail::unary<Op::name>(a); \
  }
#define BINARY(name, ...)     \
  template <class A, class B> \
  requires Operands2<A, B>    \
  auto name(const A& a, const B& b) { return detail::binary<Op::name>(a, b); }
#define TERNARY(name, ...)             \
  template <class A, class B, class C> \
  requires Operands3<A, B, C>          \
  auto name(const A& a, const B& b, const C& c) { return detail::ternary<Op::name>(a, b, c); }
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"

#define OPERATOR(symbol, op)  \
  template <class A, class B> \
  requires Operands2<A, B>    \
  auto operator symbol(const A& a, const B& b) { return detail::binary<Op::op>(a, b); }
OPERATOR(+, add)
OPERATOR(-, sub)
OPERATOR(*, mul)
OPERATOR(%, modulo)
OPERATOR(<, less)
OPERATOR(<=, less_equal)
OPERATOR(>, greater)
OPERATOR(>=, greater_equal)
OPERATOR(==, equal)
OPERATOR(!=, not_equal)
OPERATOR(<<, shift_left)
OPERATOR(>>, shift_right)
#undef OPERATOR

// For integers the complement of each bit, for pred logical negation.
#define OPERATOR(symbol, of_integers, of_preds)                                  \
  template <class A, class B>                                                    \
  requires Operands2<A, B>                                                       \
  auto operator symbol(const A& a, const B& b) {                                 \
    using T = detail::common_element<A, B>;                                      \
    constexpr bool integer = info(element_type<T>).kind == ElementKind::integer; \
    constexpr Op op = integer ? Op::of_integers : Op::of_preds;                  \
    return detail::binary<op>(a, b);                                             \
  }
OPERATOR(&, bitwise_and, logical_and)
OPERATOR(|, bitwise_or, logical_or)
OPERATOR(^, bitwise_xor, logical_xor)
#undef OPERATOR

/// Quotient of floating-point numbers; for integers it is rounded down, like Python's //.
template <class A, class B>
requires Operands2<A, B>
auto operator/(const A& a, const B& b) {
  using T = detail::common_element<A, B>;
  if constexpr (info(element_type<T>).kind == ElementKind::integer)
    return detail::binary<Op::floor_div>(a, b);
  else
    return detail::binary<Op::div>(a, b);
}
template <TileExpr A>
auto operator-(const A& a) {
  return detail::unary<Op::neg>(a);
}
template <TileExpr A>
auto operator!(const A& a) {
  return detail::unary<Op::logical_not>(a);
}

template <TileExpr A>
auto operator~(const A& a) {
  constexpr bool logical = std::same_as<typename A::type, pred>;
  static_assert(!logical, "tessera: ~ takes integers; for a pred write !p");
  constexpr Op op = logical ? Op::logical_not : Op::bitwise_not;
  return detail::unary<op>(a);
}

/// Streams print values that C++ knows at trace time, and a tile has none.
template <class Stream, TileExpr A>
requires requires { typename Stream::traits_type; }
Stream& operator<<(Stream& stream, const A&) {
  static_assert(std::is_void_v<A>,
                "tessera: a tile has no value yet when the kernel is traced; print(\"x is {}\", x) prints it when the "
                "kernel runs");
  return stream;
}

template <class A, class B>
requires(TileExpr<A> || TileExpr<B>) auto operator&&(const A& a, const B&) {
  static_assert(!std::same_as<A, A>, "tessera: && cannot be traced; use & on pred tiles");
  return a;
}
template <class A, class B>
requires(TileExpr<A> || TileExpr<B>) auto operator||(const A& a, const B&) {
  static_assert(!std::same_as<A, A>, "tessera: || cannot be traced; use | on pred tiles");
  return a;
}

/// condition ? a : b, elementwise.
template <TileExpr C, Operand A, Operand B>
auto where(const C& condition, const A& a, const B& b) {
  using T = detail::common_element<A, B>;
  constexpr bool logical = std::is_same_v<typename C::type, pred>;
  static_assert(logical || is_refused<C>, "tessera: where takes a pred as its condition, the result of a comparison; "
                                          "for a number write x != 0");
  auto c = [&] {
    if constexpr (logical)
      return detail::operand<pred>(condition);
    else
      return LiteralExpr<pred>(0);
  }();
  auto x = detail::operand<T>(a);
  auto y = detail::operand<T>(b);
  return Apply<Op::select, T, std::max({C::rank, detail::rank_of<A>(), detail::rank_of<B>()}), decltype(c), decltype(x),
               decltype(y)>(c, x, y);
}

/// The value in another element type, of the same shape. The header of ops.def defines how each pair converts.
template <Element T, TileExpr A>
auto cast(const A& a) {
  auto x = detail::operand<typename A::type>(a);
  return Apply<Op::cast, T, A::rank, decltype(x)>(x);
}
template <class T, TileExpr A>
requires(!Element<T>) auto cast(const A& a) {
  static_assert(Element<T>,
                "tessera: cast takes an element type such as f32 or i32; for a char write i8, for a long long i64, for "
                "a bool x != 0");
  return a;
}
/// The value with the same bits in memory, of the same shape. Both element types must be types of tensors of the same
/// size.
template <Element T, TileExpr A>
auto bitcast(const A& a) {
  using From = typename A::type;
  static_assert(bitcasts(element_type<From>, element_type<T>),
                "tessera: bitcast takes element types of tensors with the same number of bits; cast<T>(x) converts");
  auto x = detail::operand<From>(a);
  return Apply<Op::bitcast, T, A::rank, decltype(x)>(x);
}

struct NanIgnored {};
struct NanPropagated {};
/// How minimum and maximum treat a NaN: `ignore`, the default, returns the other operand, `propagate` returns NaN.
struct Nan {
  static constexpr NanIgnored ignore{};
  static constexpr NanPropagated propagate{};
};
template <class A, class B>
requires Operands2<A, B>
auto minimum(const A& a, const B& b, NanIgnored) { return minimum(a, b); }
template <class A, class B>
requires Operands2<A, B>
auto minimum(const A& a, const B& b, NanPropagated) { return minimum_nan(a, b); }
template <class A, class B>
requires Operands2<A, B>
auto maximum(const A& a, const B& b, NanIgnored) { return maximum(a, b); }
template <class A, class B>
requires Operands2<A, B>
auto maximum(const A& a, const B& b, NanPropagated) { return maximum_nan(a, b); }

}  // namespace internal
}  // namespace tessera
