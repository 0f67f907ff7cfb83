// Reductions and scans along axes of a tile.
#pragma once
#include <array>

#include "tessera/dsl/tile.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// An axis by its number. `max(x, axis(0))` reduces along axis 0; max(x, 0) does not compile.
template <class N>
constexpr Axis axis(N number, Location location = Location::current()) {
  return Axis(number, location);
}

namespace detail {

template <Element Result, TileExpr A>
Tile<Result, A::rank> along(Op op, const A& a, Axis axis, std::string_view hint = "") {
  Trace& trace = Trace::current(axis.location);
  const std::int64_t normal = trace.axis(axis, A::rank, name(op), hint);
  return Tile<Result, A::rank>(
      trace.apply(op, element_type<Result>, {a.lower(trace, axis.location)}, {normal}, axis.location));
}

/// Is there an elementwise op of two values that the author may have meant?
constexpr bool has_two_readings(Op op) {
  return op == Op::max || op == Op::min || op == Op::max_nan || op == Op::min_nan;
}

template <Op op, TileExpr A>
auto reduction(const A& a, Axis axis) {
  if constexpr (check_op<op, typename A::type>())
    return along<typename A::type>(
        op, a, axis,
        has_two_readings(op) ? "; for two values, maximum(a, b) is the larger and minimum(a, b) the smaller" : "");
  else
    return Refused<i32, A::rank>();
}
// `max(x, 0)` may mean the larger of each element and 0, while max(x, 1) of a tile is the usual way to name an axis.
// Only a literal 0 is also a null pointer, which overload resolution prefers to an Axis.
template <Op op, class A>  // the call's, because clang checks eagerly what depends on no parameter
constexpr void check_literal_0() {
  static_assert(!has_two_readings(op) || !std::is_same_v<A, A>,
                "tessera: max(x, 0) is ambiguous; write maximum(x, 0) for the larger of each element and 0, or max(x, "
                "axis(0)) for the largest along axis 0 (likewise for min, max_nan and min_nan)");
}

// sum(x, 0, 1), the syntax of some other languages.
template <TileExpr A>
A check_braces(const A& a) {
  static_assert(!std::same_as<A, A>, "tessera: write several axes in braces, as in sum(x, {0, 1})");
  return a;
}

template <Op op, TileExpr A>
auto reduction(const A& a, const std::vector<Axis>& axes, Location location) {
  if constexpr (check_op<op, typename A::type>()) {
    using Result = Tile<typename A::type, A::rank>;
    Handle value = Result(a, location).lower(Trace::current(location), location);
    for (Axis axis : axes)
      value = Trace::current(location).apply(op, element_type<typename A::type>, {value}, {axis.number}, location);
    return Result(value);
  } else {
    return Refused<i32, A::rank>();
  }
}
template <TileExpr A>
std::vector<Axis> axes_of(const A&, std::string_view what, Location location, std::span<const int> named) {
  return Trace::current(location).axes(named, A::rank, what, location);
}
template <TileExpr A>
std::vector<Axis> axes_of(const A&, std::string_view what, Location location) {
  std::array<int, A::rank> all;
  for (int i = 0; i < A::rank; ++i) all[static_cast<std::size_t>(i)] = i;
  return Trace::current(location).axes(all, A::rank, what, location);
}

template <TileExpr A>
auto mean(const A& a, const std::vector<Axis>& axes, Location location) {
  const Tile<typename A::type, A::rank> x(a, location);
  constexpr bool real = accepts(Op::div, element_type<typename A::type>);
  static_assert(real, "tessera: mean takes f32 or f64; cast<f32>(x) first");
  if constexpr (real) {
    Trace& trace = Trace::current(location);
    double count = 1;
    for (Axis axis : axes) count *= trace.shape(x.lower(trace, location), location)[axis.number];
    return Tile<typename A::type, A::rank>(reduction<Op::sum>(x, axes, location) / count, location);
  } else {
    return Refused<f32, A::rank>();
  }
}

}  // namespace detail

// Reductions keep their axes, with extent 1: along one axis, along several as in sum(x, {0, 2}), or along all as in
// sum(x). Axes are in [-rank, rank), each named once. The element type is the operand's.
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define STRUCTURAL(...)
#define REDUCTION(name, ...)                                                                    \
  template <TileExpr A>                                                                         \
  auto name(const A& a, Axis axis) {                                                            \
    return detail::reduction<Op::name>(a, axis);                                                \
  }                                                                                             \
  template <TileExpr A>                                                                         \
  auto name(const A& a, std::nullptr_t, Location location = Location::current()) {              \
    detail::check_literal_0<Op::name, A>();                                                     \
    return detail::reduction<Op::name>(a, Axis(0, location));                                   \
  }                                                                                             \
  template <TileExpr A, int N>                                                                  \
  auto name(const A& a, const int(&axes)[N], Location location = Location::current()) {         \
    return detail::reduction<Op::name>(a, detail::axes_of(a, #name, location, axes), location); \
  }                                                                                             \
  template <TileExpr A>                                                                         \
  auto name(const A& a, Location location = Location::current()) {                              \
    return detail::reduction<Op::name>(a, detail::axes_of(a, #name, location), location);       \
  }                                                                                             \
  template <TileExpr A, Literal First, Literal... More>                                         \
  auto name(const A& a, First, More...) requires(sizeof...(More) > 0) {                         \
    return detail::check_braces(a);                                                             \
  }
#include "tessera/graph/ops.def"

/// The arithmetic mean along an axis, several or all, which keep extent 1; f32 or f64.
template <TileExpr A>
auto mean(const A& a, Axis axis) {
  const int named[] = {axis.number};
  return detail::mean(a, detail::axes_of(a, "mean", axis.location, named), axis.location);
}
template <TileExpr A, int N>
auto mean(const A& a, const int (&axes)[N], Location location = Location::current()) {
  return detail::mean(a, detail::axes_of(a, "mean", location, axes), location);
}
template <TileExpr A>
auto mean(const A& a, Location location = Location::current()) {
  return detail::mean(a, detail::axes_of(a, "mean", location), location);
}

template <TileExpr A, Literal First, Literal... More>
auto mean(const A& a, First, More...) requires(sizeof...(More) > 0) {
  return detail::check_braces(a);
}

/// Index of the largest element along the axis, the lowest one among equals; i32, the axis keeps extent 1.
template <TileExpr A>
Tile<i32, A::rank> argmax(const A& a, Axis axis) {
  static_assert(Computing<typename A::type>, "tessera: argmax takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first");
  return detail::along<i32>(Op::argmax, a, axis);
}

namespace detail {
/// A value with the reverse order. ~a also works for the lowest integer, which has no negative.
template <TileExpr A>
auto turned_over(const A& a) {
  if constexpr (info(element_type<typename A::type>).kind == ElementKind::integer)
    return ~a;
  else
    return -a;
}
}  // namespace detail

/// Index of the smallest element along the axis, the lowest one among equals; i32, the axis keeps extent 1.
template <TileExpr A>
Tile<i32, A::rank> argmin(const A& a, Axis axis) {
  static_assert(Computing<typename A::type>, "tessera: argmin takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first");
  if constexpr (Computing<typename A::type>) return argmax(detail::turned_over(a), axis);
  return Tile<i32, A::rank>(Handle());
}

/// A value and its index along the axis: auto [value, index] = max_with_index(x, 1).
template <Element T, int R>
struct Indexed {
  Tile<T, R> value;
  Tile<i32, R> index;
  template <class One>
  requires std::same_as<One, Tile<T, R>>
  operator One() const {
    static_assert(!std::same_as<One, One>, "tessera: these are two tiles: auto [value, index] = max_with_index(x, 1)");
    return value;
  }
};
template <Element T, int R>
Tile(const Indexed<T, R>&) -> Tile<T, R>;
namespace detail {
// After the one error about a type that does not compute.
template <TileExpr A>
Indexed<typename A::type, A::rank> no_indexed(const A&) {
  return {Tile<typename A::type, A::rank>(Handle()), Tile<i32, A::rank>(Handle())};
}
}  // namespace detail
/// max(x, axis) and argmax(x, axis); the kernel reads the elements once.
template <TileExpr A>
Indexed<typename A::type, A::rank> max_with_index(const A& a, Axis axis) {
  static_assert(Computing<typename A::type>,
                "tessera: max_with_index takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first");
  if constexpr (Computing<typename A::type>) {
    const Tile<typename A::type, A::rank> x(a, axis.location);
    return {max(x, axis), argmax(x, axis)};
  }
  return detail::no_indexed(a);
}
/// min(x, axis) and argmin(x, axis), in the same way.
template <TileExpr A>
Indexed<typename A::type, A::rank> min_with_index(const A& a, Axis axis) {
  static_assert(Computing<typename A::type>,
                "tessera: min_with_index takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first");
  if constexpr (Computing<typename A::type>) {
    const Tile<typename A::type, A::rank> x(detail::turned_over(a), axis.location);
    return {Tile<typename A::type, A::rank>(detail::turned_over(max(x, axis)), axis.location), argmax(x, axis)};
  }
  return detail::no_indexed(a);
}

namespace detail {
template <Op op, TileExpr A>
auto scan(const A& a, Axis axis, ScanOptions options) {
  if constexpr (check_op<op, typename A::type>()) {
    Trace& trace = Trace::current(axis.location);
    const std::int64_t normal = trace.axis(axis, A::rank, name(op)), which = options.reverse + 2 * options.exclusive;
    return Tile<typename A::type, A::rank>(trace.apply(
        op, element_type<typename A::type>, {a.lower(trace, axis.location)}, {normal, which}, axis.location));
  } else {
    return Refused<i32, A::rank>();
  }
}
template <TileExpr A>
A check_options(const A& a) {
  static_assert(!std::same_as<A, A>,
                "tessera: name the options of a scan: cumsum(x, 1, {.reverse = true, .exclusive = true})");
  return a;
}
}  // namespace detail

// Scans combine each element with those before it along the axis: cumsum(x, 1). {.reverse = true} combines it with
// those after it, {.exclusive = true} leaves out the element itself; both can be set. Shape and element type are the
// operand's.
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#define SCAN(name, ...)                                        \
  template <TileExpr A>                                        \
  auto name(const A& a, Axis axis, ScanOptions options = {}) { \
    return detail::scan<Op::name>(a, axis, options);           \
  }                                                            \
  template <TileExpr A, Literal First, Literal... More>        \
  auto name(const A& a, Axis, First, More...) {                \
    return detail::check_options(a);                           \
  }
#include "tessera/graph/ops.def"

}  // namespace internal
}  // namespace tessera
