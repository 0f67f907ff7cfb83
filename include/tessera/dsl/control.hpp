// The grid, loops, branches and conditions of a kernel, and tracing one from a C++ function.
#pragma once
#include <array>
#include <tuple>
#include <utility>

#include "tessera/dsl/tiled_view.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {
template <class A>
Handle index_value(Trace& trace, const A& a, Location location) {
  if constexpr (TileExpr<A>) {
    static_assert(std::is_same_v<typename A::type, i32> && A::rank == 0,
                  "tessera: an extent or a count is an Index: i32, rank 0");
    return a.lower(trace, location);
  } else {
    static_assert(std::is_integral_v<A>, "tessera: an extent or a count is an integer or an Index");
    return trace.literal(ElementType::i32, a, location);
  }
}
}  // namespace detail

/// An extent of the grid: an Index computed from extents and scalars, or a C++ integer.
class GridExtent {
 public:
  template <class A>
  requires Operand<A> GridExtent(const A& a, Location location = Location::current())
      : value_(detail::index_value(Trace::current(location), a, location)), location_(location) {}
  Handle value() const { return value_; }
  Location location() const { return location_; }

 private:
  Handle value_;
  Location location_;
};

/// The logical grid, evaluated on the host at launch, and the index of this CTA's grid tile along each axis:
/// `Index row = blocks(rows);` or `auto [m, n] = blocks(...)`. Grid tiles run in no particular order. Call it at most
/// once; the grid of a kernel without it is one tile.
inline Index blocks(GridExtent extent) {
  return Index(Trace::current(extent.location()).blocks({extent.value()}, extent.location())[0]);
}
template <std::convertible_to<GridExtent>... More>
auto blocks(GridExtent first, GridExtent second, const More&... more) {
  const auto values =
      Trace::current(first.location())
          .blocks({first.value(), second.value(), GridExtent(more, first.location()).value()...}, first.location());
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Index, sizeof...(I)>{Index(values[I])...};
  }
  (std::make_index_sequence<2 + sizeof...(More)>());
}

namespace detail {
// Explains the error where a bool is passed instead of a condition of the kernel.
template <class C>
constexpr bool check_condition() {
  static_assert(TileExpr<C>,
                "tessera: a condition is computed in the kernel, from extents, scalars or tiles; for a value known "
                "when the kernel is traced, use a plain if");
  return TileExpr<C>;
}
}  // namespace detail

/// A condition on extents and scalars, a pred of rank 0. The host checks it at launch, and rejects the launch with the
/// text if it does not hold.
template <class C>
void require(const C& condition, std::string text, Location location = Location::current()) {
  if constexpr (detail::check_condition<C>()) {
    static_assert(std::is_same_v<typename C::type, pred> && C::rank == 0,
                  "tessera: require takes a comparison of rank 0");
    Trace& trace = Trace::current(location);
    trace.require(condition.lower(trace, location), std::move(text), location);
  }
}

/// hints({.warps = 8, .stages = 3, .cluster = 2, .occupancy = 2, .arch = "sm_90"}): preferences for the generated code,
/// on that architecture or on all. Hints never change results, but for the order of sums, which .deterministic = true
/// keeps from depending on the number of a launch's tiles. With .launch_dependents = false the next launch of a
/// stream begins only when all CTAs of this kernel have ended. A hint that this kernel cannot follow is ignored, and
/// the text of the plan says so; a value that no kernel can have is an error. If a number is given twice, the last one
/// counts; .deterministic = true and .launch_dependents = false stay, once given.
inline void hints(const Hints& hints, Location location = Location::current()) {
  Trace::current(location).hints(hints);
}

namespace detail {
template <class V>
inline constexpr bool is_view = false;
template <Access access, Element T, int R>
inline constexpr bool is_view<TensorView<access, T, R>> = true;
template <class View>
inline constexpr bool is_view<Optional<View>> = is_view<View>;
template <class View>
inline constexpr bool is_optional = requires(const View& view) { view.present(); };
// A condition that needs to hold only if a tensor is present.
template <class View, TileExpr C>
auto unless_absent(const View& view, const C& condition, Location location) {
  if constexpr (is_optional<View>)
    return Tile<pred, 0>(condition | !view.present(location), location);
  else
    return condition;
}
}  // namespace detail

/// same_extents(a, b, ...): requires that tensors, or views of them, have the same extent along each axis; an Optional
/// tensor only if it is present. It is a class because a function cannot take the caller's location after a parameter
/// pack.
template <class First, class... More>
struct same_extents {
  same_extents(const First& first, const More&... more, Location location = Location::current()) {
    constexpr bool views = detail::is_view<First> && (detail::is_view<More> && ...);
    static_assert(views && sizeof...(More) > 0, "tessera: same_extents takes two or more tensors");
    if constexpr (views) {
      static_assert(((First::rank == More::rank) && ...), "tessera: same_extents takes tensors of the same rank");
      if constexpr (((First::rank == More::rank) && ...)) (agree(first, more, location), ...);
    }
  }

 private:
  template <class Other>
  static void agree(const First& first, const Other& other, Location location) {
    Trace& trace = Trace::current(location);
    for (int axis = 0; axis < First::rank; ++axis) {
      const auto same = first.extent({axis, location}) == other.extent({axis, location});
      require(detail::unless_absent(first, detail::unless_absent(other, same, location), location),
              "arguments " + std::to_string(trace.argument_of(first.value())) + " and " +
                  std::to_string(trace.argument_of(other.value())) + " have the same extent along axis " +
                  std::to_string(axis),
              location);
    }
  }
};
template <class First, class... More>
same_extents(const First&, const More&...) -> same_extents<First, More...>;

/// A condition that must hold while the kernel runs: a pred of any shape, all of whose elements must hold. Otherwise
/// the launch fails with kernel, location, text and block index: on the CPU it throws Error, on a GPU the next
/// synchronization does.
template <class C>
void check(const C& condition, std::string text, Location location = Location::current()) {
  if constexpr (detail::check_condition<C>()) {
    static_assert(std::is_same_v<typename C::type, pred>, "tessera: check takes a comparison, of any shape");
    Trace& trace = Trace::current(location);
    if constexpr (std::is_same_v<typename C::type, pred>)
      trace.check(condition.lower(trace, location), std::move(text), location);
  }
}

/// The text of a print and its source location.
struct PrintText {
  std::string text;
  Location location;
  PrintText(const char* line, Location at = Location::current()) : text(line), location(at) {}
  PrintText(std::string line, Location at = Location::current()) : text(std::move(line)), location(at) {}
};
/// Prints a line on stdout: the text, with a value in place of each {}. Literal braces are doubled.
template <class... Values>
void print(PrintText text, const Values&... values) {
  static_assert((TileExpr<Values> && ...),
                "tessera: print takes tiles and scalars of the kernel; format C++ values into the text");
  if constexpr ((TileExpr<Values> && ...)) {
    Trace& trace = Trace::current(text.location);
    trace.print(std::move(text.text), {values.lower(trace, text.location)...}, text.location);
  }
}

template <TileExpr A, class... Values>
void print(const A&, const Values&...) {
  static_assert(!std::same_as<A, A>, "tessera: print takes its text first, as in print(\"x is {}\", x)");
}

/// for (Index i : range(n)) { ... }: a loop in the kernel, traced once, for i = 0 .. n-1. It carries the Vars that its
/// body changes. range(begin, end) and range(begin, end, step) count like Python's; a step of 0 runs no iteration. Each
/// argument is a C++ integer or an Index, which may be computed from a tile.
/// range(n).unroll(4): on a GPU the body is emitted four times in a row; unroll(1) forbids unrolling. It changes no
/// result.
class range {
 public:
  template <class A>
  requires Operand<A>
  explicit range(const A& count, Location location = Location::current())
      : count_(detail::index_value(Trace::current(location), count, location)), location_(location) {}
  template <class A, class B>
  requires Operand<A> && Operand<B> range(const A& begin, const B& end, Location location = Location::current())
      : range(begin, end, 1, location) {}
  template <class A, class B, class C>
  requires Operand<A> && Operand<B> && Operand<C> range(const A& begin, const B& end, const C& step,
                                                        Location location = Location::current())
      : location_(location) {
    Trace& trace = Trace::current(location);
    begin_ = detail::index_value(trace, begin, location), step_ = detail::index_value(trace, step, location);
    const Index first(begin_), last(detail::index_value(trace, end, location)), by(step_);
    count_ = cdiv(last - first, by).lower(trace, location);
  }
  range(const range&) = delete;
  /// The same loop, unrolled by `factor`. Error at trace time if it is less than 1.
  range unroll(Count factor) && {
    if (factor < 1)
      Trace::current(location_).fail(
          location_, "unroll(" + std::to_string(factor) + "): the factor must be 1 or more");
    return range(*this, factor);
  }
  ~range() {
    if (open_) Trace::current(location_).abandon_loop(location_);
  }

  struct End {};
  /// The loop's Index; its conversion reports an error for `for (int i : range(n))`.
  class Counter : public Index {
   public:
    explicit Counter(const Index& index) : Index(index) {}
    template <std::integral N>
    requires(!std::same_as<N, bool>) operator N() const {
      static_assert(!std::same_as<N, N>,
                    "tessera: a loop in the kernel counts with a value of the kernel: for (Index i : range(n))");
      return 0;
    }
  };
  class Iterator {
   public:
    explicit Iterator(range& owner) : owner_(owner) {}
    Counter operator*() const {
      const Index iteration(owner_.counter_);
      if (owner_.step_.id == no_id) return Counter(iteration);
      return Counter(Index(Index(owner_.begin_) + iteration * Index(owner_.step_), owner_.location_));
    }
    Iterator& operator++() {
      owner_.open_ = false;
      Trace::current(owner_.location_).end_region();
      done_ = true;
      return *this;
    }
    bool operator!=(End) const { return !done_; }

   private:
    range& owner_;
    bool done_ = false;
  };
  Iterator begin() {
    counter_ = Trace::current(location_).begin_loop(count_, location_, unroll_);
    open_ = true;
    return Iterator(*this);
  }
  End end() const { return {}; }

 private:
  range(const range& loop, int unroll)
      : count_(loop.count_), begin_(loop.begin_), step_(loop.step_), location_(loop.location_), unroll_(unroll) {}

  Handle count_, counter_;
  Handle begin_, step_;  // none: the counter itself
  Location location_;
  int unroll_ = 0;
  bool open_ = false;
};

namespace detail {
template <class C>
Handle condition_value(Trace& trace, const C& condition, Location location) {
  if constexpr (check_condition<C>()) {
    static_assert(std::same_as<typename C::type, pred> && C::rank == 0,
                  "tessera: if_ and while_ take a condition of rank 0, as item(any(x)) is; for tiles use "
                  "where(condition, a, b)");
    return condition.lower(trace, location);
  } else {
    return {};
  }
}
template <class Body>
constexpr bool check_body() {
  constexpr bool body = std::is_invocable_v<Body>;
  static_assert(body, "tessera: if_, else_ and while_ take their body as a lambda: [&] { ... }");
  if constexpr (body)
    static_assert(std::is_void_v<std::invoke_result_t<Body>>,
                  "tessera: if_, else_ and while_ return no value: let the lambda assign to a Var, or use "
                  "where(condition, a, b)");
  return body;
}
}  // namespace detail

/// An if_, with one branch or two. It can only be followed by else_, once.
template <bool complete>
class Branch {
 public:
  Branch(Handle condition, Location location) : condition_(condition), location_(location) {}
  template <class Body>
  Branch<true> else_(const Body& body) {
    static_assert(!complete, "tessera: an if_ has one else_");
    Trace& trace = Trace::current(location_);
    if (std::exchange(has_else_, true)) trace.fail(location_, "else_: this if_ already has one");
    trace.begin_branch((!Tile<pred, 0>(condition_)).lower(trace, location_), location_);
    if constexpr (detail::check_body<Body>()) body();
    trace.end_region();
    return {condition_, location_};
  }
  template <class Condition, class Body>
  Branch<true> else_if(const Condition&, const Body&) {
    static_assert(!std::same_as<Body, Body>,
                  "tessera: else_if is not supported: write .else_([&] { if_(condition, ...); })");
    return {condition_, location_};
  }
  template <class T>
  requires std::same_as<T, Tile<pred, 0>>
  operator T() const {
    static_assert(!std::same_as<T, T>,
                  "tessera: if_ returns no value: let it assign to a Var, or use where(condition, a, b)");
    return T(condition_);
  }

 private:
  Handle condition_;
  Location location_;
  bool has_else_ = complete;
};
template <bool complete>
Tile(const Branch<complete>&) -> Tile<pred, 0>;

/// if_(condition, [&] { ... }).else_([&] { ... }): effects that happen, and Vars that change, only where the condition
/// (a pred of rank 0) holds, or only where it does not. Vars keep the values of the branch that was taken.
template <class C, class Body>
Branch<false> if_(const C& condition, const Body& body, Location location = Location::current()) {
  Trace& trace = Trace::current(location);
  const Handle value = detail::condition_value(trace, condition, location);
  trace.begin_branch(value, location);
  if constexpr (detail::check_body<Body>()) body();
  trace.end_region();
  return {value, location};
}

/// while_([&] { return condition; }, [&] { ... }): iterates as long as the condition (a pred of rank 0) holds. It is
/// computed before each iteration from the current Vars. The author must ensure that the loop ends; an error at trace
/// time reports a condition that no iteration can change.
template <class Condition, class Body>
void while_(const Condition& condition, const Body& body, Location location = Location::current()) {
  static_assert(std::is_invocable_v<Condition>,
                "tessera: the condition of while_ is a lambda, as in while_([&] { return i < n; }, ...)");
  if constexpr (std::is_invocable_v<Condition>) {
    Trace& trace = Trace::current(location);
    const auto holds = [&] { return detail::condition_value(trace, condition(), location); };
    trace.begin_repeat(holds(), location);
    if constexpr (detail::check_body<Body>()) body();
    trace.end_region(holds());
  }
}

namespace detail {

template <class P>
inline constexpr bool is_list = requires { P::parameters; };
template <class P>
inline constexpr bool is_parameter = is_list<P> || requires { P::parameter; };

/// The parameters of the graph that a parameter of the author stands for.
template <class P>
constexpr std::size_t count_parameters() {
  if constexpr (is_list<P>)
    return P::parameters.size();
  else
    return 1;
}
template <class P>
std::span<const Parameter> graph_parameters() {
  if constexpr (is_list<P>)
    return P::parameters;
  else
    return {&P::parameter, 1};
}
template <class... P>
std::vector<Parameter> graph_parameters_of() {
  std::vector<Parameter> all;
  [[maybe_unused]] const auto add = [&](std::span<const Parameter> some) {
    all.insert(all.end(), some.begin(), some.end());
  };
  (add(graph_parameters<P>()), ...);
  return all;
}

/// The handle of a parameter, whose first parameter of the graph is `next`; advances `next`.
template <class P>
P make_parameter(Trace& trace, std::int64_t& next, Location location) {
  const std::int64_t first = next;
  next += static_cast<std::int64_t>(count_parameters<P>());
  const auto apply = [&](Op op, ElementType type, std::int64_t position) {
    return trace.apply(op, type, std::vector<Handle>{}, {position}, location);
  };
  if constexpr (is_list<P>)
    return P(apply(Op::scalar, ElementType::i32, next - 1), first);
  else
    return P(apply(P::parameter.access == Access::scalar ? Op::scalar : Op::tensor, P::parameter.type, first));
}
/// Calls the function with handles of its parameters, made from left to right.
template <class... P, class F>
auto call_with_parameters([[maybe_unused]] Trace& trace, const F& function, [[maybe_unused]] Location location) {
  [[maybe_unused]] std::int64_t next = 0;
  return std::apply(function, std::tuple<P...>{make_parameter<P>(trace, next, location)...});
}

template <class... P>
struct Parameters {};
// Parameters are handles, which are created for the call.
template <class... P>
constexpr bool check_values() {
  constexpr bool values = ((!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>)&&...);
  static_assert(values, "tessera: a kernel takes its parameters by value: Out<f32, 1> y, not Out<f32, 1>& y");
  return values;
}

// The parameter types of F; if F is not a kernel, one message says why, and Parameters<void> suppresses further ones.
template <class F, class C, class R, class... P>
constexpr auto check_parameters(R (C::*)(P...) const) {
  static_assert(std::is_void_v<R>, "tessera: a kernel returns nothing; store what it computes");
  static_assert((is_parameter<std::remove_cvref_t<P>> && ...),
                "tessera: a kernel's parameters are In, Out, InOut, Optional or List of these, and Scalar");
  return std::conditional_t < std::is_void_v<R> && check_values<P...>() && (is_parameter<std::remove_cvref_t<P>> && ...),
         Parameters<std::remove_cvref_t<P>...>, Parameters < void >> ();
}
template <class F>
constexpr auto parameters_of() {
  if constexpr (requires { check_parameters<F>(&F::operator()); }) {
    return check_parameters<F>(&F::operator());
  } else {
    static_assert(!std::is_same_v<F, F>,
                  "tessera: a kernel must be a non-mutable lambda without auto parameters");
    return Parameters<void>();
  }
}

template <class F, class... P>
Graph trace_function(std::string name, const F& function, Parameters<P...>, Location location) {
  Trace trace(std::move(name), graph_parameters_of<P...>(), location);
  call_with_parameters<P...>(trace, function, location);
  Graph graph = trace.finish();
  check_outs(graph);
  return graph;
}
template <class F>
Graph trace_function(std::string, const F&, Parameters<void>, Location) {
  return {};
}

}  // namespace detail

/// The graph of a kernel, from a lambda whose parameters are In, Out, InOut, Optional, List and Scalar.
template <class F>
Graph trace_kernel(std::string name, const F& function, Location location = Location::current()) {
  return detail::trace_function(std::move(name), function, detail::parameters_of<F>(), location);
}

}  // namespace internal
}  // namespace tessera
