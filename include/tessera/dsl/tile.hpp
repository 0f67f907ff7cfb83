// Named values: Tile, which is immutable, and Var, which loops carry; and the ops that are not elementwise.
#pragma once
#include <limits>

#include "tessera/dsl/expr.hpp"
#include "tessera/dsl/std_functions.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Infinity, as a number of a kernel.
inline constexpr double inf = std::numeric_limits<double>::infinity();
/// The binary logarithm of e: exp(x) is exp2(x * log2e).
inline constexpr double log2e = 1.4426950408889634074;

/// The result of reading an InOut. The read has a position in program order, so it must be named before it is used.
template <Element T, int R>
struct OrderedTile : ExprTag {
  using type = T;
  static constexpr int rank = R;
  Handle value;
  explicit OrderedTile(Handle handle) : value(handle) {}
  Handle lower(Trace&, Location) const {
    static_assert(!std::is_same_v<T, T>,
                  "tessera: a value read from an InOut must be named before it is used: Tile x = load(...);");
    return value;
  }
};

/// An immutable value of the kernel, of element type T_ and rank R_. Naming an expression is a statement: it records
/// the author's line.
template <Element T_, int R_>
class Tile : public ExprTag {
 public:
  using type = T_;
  static constexpr int rank = R_;
  template <TileExpr E>
  requires std::same_as<typename E::type, T_> &&(E::rank == R_)
      Tile(const E& expression, Location location = Location::current())
      : value_(expression.lower(Trace::current(location), location)) {}
  Tile(const OrderedTile<T_, R_>& ordered) : value_(ordered.value) {}
  template <Literal N>
  Tile(N) {
    static_assert(!std::is_same_v<N, N>,
                  "tessera: a number alone has no element type; write constant<f32>(x), or constant<i32>(n) for an "
                  "Index");
  }
  template <class None = void>
  Tile() {
    static_assert(!std::is_void_v<None>,
                  "tessera: a Tile must be initialized, as in Tile x = load(...); a value that changes later is a Var, "
                  "which must be initialized, too: Var x = zeros<f32>({8, 16})");
  }
  explicit Tile(Handle value) : value_(value) {}
  Tile(const Tile&) = default;
  Tile& operator=(const Tile&) = delete;
  template <class A>
  Tile& operator=(const A&) {
    static_assert(!std::is_same_v<A, A>, "tessera: a Tile never changes; use a Var instead");
    return *this;
  }

#define ASSIGN(symbol)                                                                                 \
  template <class A>                                                                                   \
  Tile& operator symbol(const A&) {                                                                    \
    static_assert(!std::is_same_v<A, A>, "tessera: a Tile never changes; use a Var instead");          \
    return *this;                                                                                      \
  }
  // clang-format off
  ASSIGN(+=) ASSIGN(-=) ASSIGN(*=) ASSIGN(/=) ASSIGN(%=) ASSIGN(&=) ASSIGN(|=) ASSIGN(^=) ASSIGN(<<=) ASSIGN(>>=)
  // clang-format on
#undef ASSIGN

  Leaf<T_, R_> leaf() const { return Leaf<T_, R_>(value_); }
  Handle lower(Trace&, Location) const { return value_; }

 private:
  Handle value_;
};
template <TileExpr E>
Tile(const E&) -> Tile<typename E::type, E::rank>;
template <Literal N>
Tile(N) -> Tile<f32, 0>;
Tile()->Tile<f32, 0>;
template <Element T, int R>
Tile(const OrderedTile<T, R>&) -> Tile<T, R>;

/// A position or an extent.
using Index = Tile<i32, 0>;

/// A local variable: assignment changes its value, and a loop carries it from one iteration to the next. It keeps its
/// element type, rank and shape.
template <Element T_, int R_>
class Var : public ExprTag {
 public:
  using type = T_;
  static constexpr int rank = R_;
  template <TileExpr E>
  requires std::same_as<typename E::type, T_> &&(E::rank == R_)
      Var(const E& expression, Location location = Location::current())
      : slot_(Trace::current(location).make_var(expression.lower(Trace::current(location), location), location)) {}
  Var(const Var& other, Location location = Location::current())
      : slot_(Trace::current(location).make_var(other.lower(Trace::current(location), location), location)) {}
  template <Literal N>
  Var(N) {
    static_assert(!std::is_same_v<N, N>,
                  "tessera: a number alone has no element type; write constant<f32>(x), or constant<i32>(n) for an "
                  "Index");
  }
  template <class None = void>
  Var() : slot_() {
    static_assert(!std::is_void_v<None>,
                  "tessera: a Var must be initialized, which sets its type and shape: Var x = zeros<f32>({8, 16}), or "
                  "constant<i32>(0) for one number");
  }
  ~Var() {
    if (Trace* trace = Trace::current_or_null()) trace->drop_var(slot_);
  }

  // operator= cannot have a default argument; a conversion can.
  struct Value {
    Handle value;
    Location location;
    template <TileExpr E>
    Value(const E& expression, Location at = Location::current())
        : value(expression.lower(Trace::current(at), at)), location(at) {
      static_assert(std::same_as<typename E::type, T_>,
                    "tessera: the Var has a different element type; cast<T>(x) the value");
      static_assert(E::rank == R_, "tessera: the Var has a different rank; reshape the value");
    }
  };
  Var& operator=(Value value) {
    Trace::current(value.location).assign_var(slot_, value.value, value.location);
    return *this;
  }
  // Takes `const volatile`, which no temporary binds to, so `var = expression` has one candidate, the one above.
  Var& operator=(const volatile Var& other) { return *this = Value(const_cast<const Var&>(other)); }

  /// The right operand of `var += x`: a tile of the Var's element type or a number that fits it, broadcast to its
  /// shape.
  struct Term : ExprTag {
    using type = T_;
    static constexpr int rank = R_;
    Handle value;
    Location location;
    template <TileExpr E>
    Term(const E& expression, Location at = Location::current())
        : value(expression.lower(Trace::current(at), at)), location(at) {
      static_assert(std::same_as<typename E::type, T_>,
                    "tessera: the Var has a different element type; cast<T>(x) the value");
      static_assert(E::rank <= R_, "tessera: the Var has a different rank; reshape the value");
    }
    template <Literal N>
    Term(N number, Location at = Location::current())
        : value(detail::operand<T_>(number).lower(Trace::current(at), at)), location(at) {}
    Handle lower(Trace&, Location) const { return value; }
  };
#define ASSIGN(symbol) \
  Var& operator symbol##=(Term term) { return *this = Value(*this symbol term, term.location); }
  // clang-format off
  ASSIGN(+) ASSIGN(-) ASSIGN(*) ASSIGN(/) ASSIGN(%) ASSIGN(&) ASSIGN(|) ASSIGN(^) ASSIGN(<<) ASSIGN(>>)
  // clang-format on
#undef ASSIGN

  /// The current value; validity is checked where the expression is used.
  Leaf<T_, R_> leaf() const {
    Trace* trace = Trace::current_or_null();
    return Leaf<T_, R_>(trace ? trace->snapshot(slot_) : Handle{});
  }
  Handle lower(Trace& trace, Location location) const { return trace.var(slot_, location); }

 private:
  Trace::VarSlot slot_;
};
template <TileExpr E>
Var(const E&) -> Var<typename E::type, E::rank>;
template <Literal N>
Var(N) -> Var<f32, 0>;
Var()->Var<f32, 0>;
template <Element T, int R>
Var(const OrderedTile<T, R>&) -> Var<T, R>;

/// The extent of a tile along an axis: a C++ integer.
class Extent {
 public:
  template <class N>
  constexpr Extent(N extent) : extent_(known(extent)) {}
  constexpr Extent() = default;
  constexpr operator int() const { return extent_; }

 private:
  template <class N>
  static constexpr int known(const N& extent) {
    static_assert(!TileExpr<N>,
                  "tessera: a tile's extents are C++ integers, known when the kernel is traced; elements outside of a "
                  "tensor read as padding");
    static_assert(TileExpr<N> || detail::is_integer<N>, "tessera: a tile's extents are C++ integers");
    if constexpr (detail::is_integer<N>)
      return std::in_range<int>(extent) ? static_cast<int>(extent) : std::numeric_limits<int>::min();  // no tile has it
    else
      return 1;
  }
  int extent_ = 1;
};

namespace detail {

template <int R>
Shape shape_of(const Extent (&extents)[R]) {
  static_assert(R <= max_rank, "tessera: a tile has at most 6 axes");
  Shape shape = Shape::of_rank(R);
  for (int i = 0; i < R; ++i) shape[i] = extents[i];
  return shape;
}

// The shape with its only -1 replaced, if the number of elements of `of` allows it.
inline Shape completed(Shape shape, const Shape& of) {
  std::int64_t others = 1;
  int* open = nullptr;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1 && !open)
      open = &shape[i];
    else if (__builtin_mul_overflow(others, shape[i], &others))
      return shape;
  }
  if (open && others > 0 && of.size() % others == 0) *open = static_cast<int>(of.size() / others);
  return shape;
}

}  // namespace detail

/// A tile filled with a number.
template <Element T, int R>
Tile<T, R> full(const Extent (&shape)[R], Number value, Location location = Location::current()) {
  return Tile<T, R>(Trace::current(location).literal(element_type<T>, value, location, detail::shape_of(shape)));
}
/// A tile filled with 0.
template <Element T, int R>
Tile<T, R> zeros(const Extent (&shape)[R], Location location = Location::current()) {
  return full<T>(shape, 0, location);
}
template <int R>
Tile<f32, R> full(const Extent (&shape)[R], Number) {
  static_assert(R < 0, "tessera: full needs an element type: full<f32>({..}, x)");
  return full<f32>(shape, 0);
}
template <int R>
Tile<f32, R> zeros(const Extent (&shape)[R]) {
  static_assert(R < 0, "tessera: zeros needs an element type: zeros<f32>({..})");
  return full<f32>(shape, 0);
}
template <Element T, Operand... Extents>
Tile<T, 1> full(const Extents&...) {
  static_assert(sizeof...(Extents) > sizeof...(Extents), "tessera: write the shape in braces: full<f32>({8, 16}, x)");
  return Tile<T, 1>(Handle());
}
template <Element T, Operand... Extents>
Tile<T, 1> zeros(const Extents&...) {
  static_assert(sizeof...(Extents) > sizeof...(Extents), "tessera: write the shape in braces: zeros<f32>({8, 16})");
  return Tile<T, 1>(Handle());
}
/// A number as a value of rank 0.
template <Element T>
Tile<T, 0> constant(Number value, Location location = Location::current()) {
  return Tile<T, 0>(Trace::current(location).literal(element_type<T>, value, location));
}
/// The position of each element along the axis: i32, of the given shape.
template <int R>
Tile<i32, R> iota(const Extent (&shape)[R], Axis axis) {
  Trace& trace = Trace::current(axis.location);
  return Tile<i32, R>(trace.apply(Op::iota, ElementType::i32, {}, {trace.axis(axis, R, "iota")}, axis.location,
                                  detail::shape_of(shape)));
}

namespace detail {
/// A function that uses its operand more than once: the operand is lowered once, at the author's location.
template <TileExpr A, class Body>
struct Named : ExprTag {
  using type = typename A::type;
  static constexpr int rank = A::rank;
  A operand;
  explicit Named(A a) : operand(a) {}
  Handle lower(Trace& trace, Location location) const {
    return Body()(Leaf<type, rank>(operand.lower(trace, location))).lower(trace, location);
  }
};
template <class A, class Body>
auto named(const A& a, Body) {
  constexpr bool tile = TileExpr<A>;
  static_assert(tile, "tessera: an activation takes a tile");
  if constexpr (!tile)
    return LiteralExpr<f32>(0);
  else if constexpr (check_op<Op::exp, typename A::type>())
    return Named<decltype(operand<typename A::type>(a)), Body>(operand<typename A::type>(a));
  else
    return Refused<f32, A::rank>();
}
}  // namespace detail

namespace detail {
/// The part of a constant that rounding to T drops.
template <Element T>
constexpr double rounded_off(long double exact) {
  return static_cast<double>(exact - static_cast<long double>(static_cast<T>(exact)));
}
/// The exact x c minus the rounded x c. It corrects an exponential, which turns an absolute error of its argument into
/// a relative error of its result. x is finite.
template <TileExpr X>
auto lost_by_product(const X& x, long double c) {
  using T = typename X::type;
  const double near = static_cast<double>(static_cast<T>(c));
  return fma(x, rounded_off<T>(c), fma(x, near, -(x * near)));
}

inline constexpr long double exact_log2e = 1.44269504088896340735992468100189214L;
inline constexpr long double exact_sqrt_half = 0.70710678118654752440084436210484904L;

/// max(x, bound), below which an activation is 0, so that -inf times 0 is never computed. A NaN stays a NaN.
template <TileExpr X>
auto from_bound(const X& x, double bound) {
  return maximum_nan(x, bound);
}
}  // namespace detail

/// 1 / (1 + e^-x), to a relative error of 7e-7. sigmoid2 is cheaper: a constant factor of x may absorb log2e.
template <TileExpr A>
auto sigmoid(const A& a) {
  return detail::named(a, [](const auto& given) {
    const auto x = detail::from_bound(given, -2000);
    const auto s = sigmoid2(x * log2e);
    const auto lost = detail::lost_by_product(minimum(x, 0), detail::exact_log2e);
    return fma(s, lost * 0.69314718055994530942, s);
  });
}

// Activation functions. They take any type, so that overload resolution prefers a kernel's own function of the same
// name that takes tiles.

/// x / (1 + e^-x) (Elfwing et al., 2017), also called swish; to a relative error of 1e-6. Far below 0 the sigmoid
/// becomes subnormal before x times it does; there the sigmoid of x is computed as the square of the sigmoid of x / 2.
template <class A>
auto silu(const A& a) {
  return detail::named(a, [](const auto& given) {
    using T = typename std::remove_cvref_t<decltype(given)>::type;
    const LiteralExpr<T> half(0.5), one(1);
    const auto x = detail::from_bound(given, -2000);
    const auto far = x < -80;
    const auto part = x * where(far, half, one);
    const auto s = sigmoid2(part * log2e);
    const auto lost = detail::lost_by_product(minimum(part, 0), detail::exact_log2e);
    const auto better = fma(s, lost * 0.69314718055994530942, s);
    return x * better * where(far, better, one);
  });
}
/// x times the probability that a standard normal variable is below x (Hendrycks and Gimpel, 2016): x / 2 erfc(-x /
/// sqrt 2), to a relative error of 1.2e-6. erfc(w + d) is erfc(w) (1 - 2 w d) where w is large and d small.
template <class A>
auto gelu(const A& a) {
  return detail::named(a, [](const auto& given) {
    const auto x = detail::from_bound(given, -64);
    const auto below = minimum(x, 0);
    const auto tail = erfc(x * static_cast<double>(-detail::exact_sqrt_half));
    const auto lost = detail::lost_by_product(below, -detail::exact_sqrt_half);
    return x * 0.5 * fma(tail, lost * (below * static_cast<double>(2 * detail::exact_sqrt_half)), tail);
  });
}
/// The tanh approximation of gelu, x / 2 (1 + tanh u), u = 0.79.. (x + 0.044715 x^3), to 5e-4 of gelu. It is computed
/// as x / (1 + e^-2u), which costs less and loses no digits where tanh is near -1: to a relative error of 5e-7 + 2e-7
/// 2u
/// , where the result is above 16 times the smallest normal number.
template <class A>
auto gelu_tanh(const A& a) {
  return detail::named(a, [](const auto& given) {
    const auto x = detail::from_bound(given, -64);
    constexpr double slope = 2 * log2e * 0.7978845608028654;
    return x * sigmoid2(x * (slope + 0.044715 * slope * x * x));
  });
}

/// The same elements, row-major, in another shape. One extent may be -1: it is computed from the others. Error at trace
/// time if the number of elements differs.
template <TileExpr A, int R>
Tile<typename A::type, R> reshape(const A& a, const Extent (&shape)[R], Location location = Location::current()) {
  Trace& trace = Trace::current(location);
  const Handle tile = a.lower(trace, location);
  return Tile<typename A::type, R>(
      trace.apply(Op::reshape, element_type<typename A::type>, {tile}, {}, location,
                  detail::completed(detail::shape_of(shape), trace.shape(tile, location))));
}
template <TileExpr A, Operand First, Operand... More>
Tile<typename A::type, A::rank> reshape(const A& a, const First&, const More&...) {
  static_assert(std::is_void_v<A>, "tessera: write the shape in braces: reshape(x, {8, 16})");
  return Tile<typename A::type, A::rank>(a);
}
/// The only element of a tile, as a value of rank 0. Error at trace time if the tile has more.
template <TileExpr A>
Tile<typename A::type, 0> item(const A& a, Location location = Location::current()) {
  Trace& trace = Trace::current(location);
  const Handle tile = a.lower(trace, location);
  if (trace.shape(tile, location).size() != 1)
    trace.fail(location, "item: a tile of " + to_string(trace.shape(tile, location)) +
                             " has more than one element; sum(x), max(x) and the like leave one");
  return Tile<typename A::type, 0>(trace.apply(Op::reshape, element_type<typename A::type>, {tile}, {}, location));
}
/// Broadcasts to the shape by NumPy's rule. Error at trace time if the tile does not stretch to it.
template <TileExpr A, int R>
Tile<typename A::type, R> broadcast(const A& a, const Extent (&shape)[R], Location location = Location::current()) {
  Trace& trace = Trace::current(location);
  return Tile<typename A::type, R>(trace.apply(Op::broadcast, element_type<typename A::type>,
                                               {a.lower(trace, location)}, {}, location, detail::shape_of(shape)));
}
/// Axis i of the result is axis axes[i] of the tile.
template <TileExpr A, int R>
Tile<typename A::type, R> permute(const A& a, const int (&axes)[R], Location location = Location::current()) {
  static_assert(R == A::rank, "tessera: permute must name each axis of the tile once");
  Trace& trace = Trace::current(location);
  std::vector<std::int64_t> normal;
  for (int axis : axes) normal.push_back(trace.axis({axis, location}, R, "permute"));
  return Tile<typename A::type, R>(trace.apply(Op::permute, element_type<typename A::type>,
                                               std::vector<Handle>{a.lower(trace, location)}, normal, location));
}
/// Exchanges the last two axes.
template <TileExpr A>
Tile<typename A::type, A::rank> transpose(const A& a, Location location = Location::current()) {
  static_assert(A::rank >= 2, "tessera: transpose takes a tile of rank 2 or more");
  int axes[A::rank];
  for (int i = 0; i < A::rank; ++i) axes[i] = i;
  std::swap(axes[A::rank - 1], axes[A::rank - 2]);
  return permute(a, axes, location);
}
/// Concatenates tiles along an axis: concat(axis, a, b, ...). Error at trace time if another extent differs.
template <TileExpr A, TileExpr... B>
Tile<typename A::type, A::rank> concat(Axis axis, const A& a, const B&... rest) {
  static_assert((std::is_same_v<typename A::type, typename B::type> && ...),
                "tessera: concat takes tiles of the same element type");
  static_assert(((A::rank == B::rank) && ...), "tessera: concat takes tiles of the same rank");
  Trace& trace = Trace::current(axis.location);
  const std::int64_t normal = trace.axis(axis, A::rank, "concat");
  return Tile<typename A::type, A::rank>(
      trace.apply(Op::concat, element_type<typename A::type>,
                  std::vector<Handle>{a.lower(trace, axis.location), rest.lower(trace, axis.location)...}, {normal},
                  axis.location));
}
template <TileExpr A, class... More>
A concat(const A& a, const More&...) {
  static_assert(!std::same_as<A, A>, "tessera: concat takes the axis first, then the tiles: concat(axis, a, b, ...)");
  return a;
}
/// Matrix multiply-accumulate: a [m,k] times b [k,n] plus c [m,n]. a and b have one type. f32 (true f32), tf32, f16,
/// bf16 and fp8 accumulate in f32, f64 in f64, i8 and u8 in i32, which wraps; c and the result have the
/// accumulator type. On sm_90a, sums of up to 128 products of fp8 may keep 14 bits; cast<f16> of both operands keeps
/// all. With rank 3, [b,m,k] times [b,k,n] plus [b,m,n], it is batched over the first axis. Error at trace time if
/// extents do not match.
template <TileExpr A, TileExpr B, TileExpr C>
auto mma(const A& a, const B& b, const C& c, Location location = Location::current()) {
  using Sum = typename detail::TypeOf<sum_type(element_type<typename A::type>)>::type;
  static_assert((A::rank == 2 || A::rank == 3) && B::rank == A::rank && C::rank == A::rank,
                "tessera: mma takes three tiles of rank 2, or of rank 3 for a batch; reshape them");
  static_assert(std::same_as<typename A::type, typename B::type>,
                "tessera: the operands a and b of mma must have the same element type; cast one");
  static_assert(detail::check_multiplies<typename A::type>());
  static_assert(!info(element_type<typename A::type>).multiplies || std::is_same_v<typename C::type, Sum>,
                "tessera: mma accumulates in f32 tiles, in f64 for f64 operands, in i32 for i8 and u8 operands");
  Trace& trace = Trace::current(location);
  return Tile<Sum, A::rank>(
      trace.apply(Op::mma, element_type<Sum>,
                  {a.lower(trace, location), b.lower(trace, location), c.lower(trace, location)}, {}, location));
}
template <TileExpr A, TileExpr B, Literal N>
A mma(const A& a, const B&, N) {
  static_assert(!std::same_as<A, A>, "tessera: mma accumulates in a tile: zeros<f32>({m, n}); mma(a, b) starts from "
                                     "zeros");
  return a;
}
/// The same, with c = 0.
template <TileExpr A, TileExpr B>
auto mma(const A& a, const B& b, Location location = Location::current()) {
  using Sum = typename detail::TypeOf<sum_type(element_type<typename A::type>)>::type;
  static_assert(A::rank == B::rank, "tessera: the operands a and b of mma must have the same rank, 2, or 3 for a "
                                    "batch; reshape one");
  Trace& trace = Trace::current(location);
  Shape shape = trace.shape(a.lower(trace, location), location);
  const Shape right = trace.shape(b.lower(trace, location), location);
  shape[A::rank - 1] = right[B::rank - 1];
  return mma(a, b, Tile<Sum, A::rank>(trace.literal(element_type<Sum>, 0, location, shape)), location);
}

/// a / b rounded up: computed by C++ for ints; for values of the kernel it is an op.
constexpr int cdiv(int a, int b) { return a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0); }

}  // namespace internal
}  // namespace tessera
