// Sorting along an axis, top-k, and histograms.
#pragma once
#include "tessera/dsl/reductions.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Options of top_k.
struct TopKOptions {
  bool smallest = false;  ///< the smallest instead of the largest
};

namespace detail {

/// The first `count` of a tile's elements in order along the axis, or their indices; 0: all.
template <Op op, TileExpr A>
auto sorted(const A& a, Axis axis, SortOptions options, int count = 0) {
  using Result = std::conditional_t<op == Op::argsort, i32, typename A::type>;
  Trace& trace = Trace::current(axis.location);
  const Handle tile = a.lower(trace, axis.location);
  const int normal = trace.axis(axis, A::rank, count ? "top_k" : name(op));
  Shape shape = trace.shape(tile, axis.location);
  if (count) shape[normal] = count;
  return Tile<Result, A::rank>(
      trace.apply(op, element_type<Result>, {tile}, {normal, options.descending}, axis.location, shape));
}

template <TileExpr A>
A check_order(const A& a) {
  static_assert(!std::same_as<A, A>, "tessera: name the options of a sort: sort(x, 1, {.descending = true})");
  return a;
}

}  // namespace detail

/// The elements in ascending order along the axis: sort(x, 1); {.descending = true} sorts in descending order. The
/// result has the tile's shape and type: f32, f64, i32, i64, u32 or u64. NaN is larger than any number.
template <TileExpr A>
auto sort(const A& a, Axis axis, SortOptions options = {}) {
  static_assert(Computing<typename A::type>, "tessera: sort takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first");
  return detail::sorted<Op::sort>(a, axis, options);
}
template <TileExpr A, Literal First, Literal... More>
auto sort(const A& a, Axis, First, More...) {
  return detail::check_order(a);
}

/// The indices that sort the tile along the axis, i32: element i of sort(x, axis) is x's element argsort(x, axis)[i].
/// The sort is stable; -0 and +0 are equal.
template <TileExpr A>
Tile<i32, A::rank> argsort(const A& a, Axis axis, SortOptions options = {}) {
  static_assert(Computing<typename A::type>,
                "tessera: argsort takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first");
  return detail::sorted<Op::argsort>(a, axis, options);
}
template <TileExpr A, Literal First, Literal... More>
auto argsort(const A& a, Axis, First, More...) {
  return detail::check_order(a);
}

/// sort(x, axis) and argsort(x, axis), from one sort: auto [value, index] = sort_with_index(x, 1).
template <TileExpr A>
Indexed<typename A::type, A::rank> sort_with_index(const A& a, Axis axis, SortOptions options = {}) {
  static_assert(Computing<typename A::type>,
                "tessera: sort_with_index takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first");
  const Tile<typename A::type, A::rank> x(a, axis.location);
  return {detail::sorted<Op::sort>(x, axis, options), detail::sorted<Op::argsort>(x, axis, options)};
}

/// The k largest elements along the axis, in descending order, and their indices (i32): auto [value, index] = top_k(x,
/// 8, 1). {.smallest = true} takes the k smallest, in ascending order. Both results have extent k along the axis. Error
/// at trace time unless k is between 1 and the extent.
template <TileExpr A>
Indexed<typename A::type, A::rank> top_k(const A& a, Count k, Axis axis, TopKOptions options = {}) {
  static_assert(Computing<typename A::type>, "tessera: top_k takes f32, f64, i32, i64, u32 or u64; cast<f32>(x) first");
  const Tile<typename A::type, A::rank> x(a, axis.location);
  const Trace& trace = Trace::current(axis.location);
  const Shape& shape = trace.shape(x.lower(Trace::current(axis.location), axis.location), axis.location);
  const int normal = trace.axis(axis, A::rank, "top_k");
  if (k < 1 || k > shape[normal])
    trace.fail(axis.location, "top_k: the first " + std::to_string(k) + " of " + to_string(shape) + " along axis " +
                                  std::to_string(normal) + "; take from 1 to " + std::to_string(shape[normal]));
  const SortOptions order{.descending = !options.smallest};
  return {detail::sorted<Op::sort>(x, axis, order, k), detail::sorted<Op::argsort>(x, axis, order, k)};
}

template <TileExpr A, Literal First, Literal... More>
auto top_k(const A& a, Count, Axis, First, More...) {
  static_assert(!std::same_as<A, A>,
                "tessera: name the options of top_k: top_k(x, 8, 1, {.smallest = true})");
  return Tile<typename A::type, A::rank>(a);
}

/// Counts the elements along the axis that are 0, 1, ..., bins - 1: the result is i32, with extent `bins` along the
/// axis. Other values are not counted.
template <TileExpr A>
Tile<i32, A::rank> histogram(const A& a, Count bins, Axis axis) {
  static_assert(std::same_as<typename A::type, i32>, "tessera: histogram takes i32; cast<i32>(x) first");
  Trace& trace = Trace::current(axis.location);
  const Handle tile = a.lower(trace, axis.location);
  const int normal = trace.axis(axis, A::rank, "histogram");
  Shape shape = trace.shape(tile, axis.location);
  shape[normal] = bins;
  return Tile<i32, A::rank>(trace.apply(Op::histogram, ElementType::i32, {tile}, {normal}, axis.location, shape));
}
/// The same over all elements: histogram(x, 256) has shape [256].
template <TileExpr A>
Tile<i32, 1> histogram(const A& a, Count bins, Location location = Location::current()) {
  const Tile<typename A::type, A::rank> x(a, location);
  if constexpr (A::rank == 1) {
    return histogram(x, bins, Axis(0, location));
  } else {
    return histogram(reshape(x, {-1}, location), bins, Axis(0, location));
  }
}

}  // namespace internal
}  // namespace tessera
