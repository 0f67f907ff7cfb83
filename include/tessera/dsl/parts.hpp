// Parts of tiles, tiles assembled from parts, and axes that are added and removed.
#pragma once
#include "tessera/dsl/tile.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A position along one axis, in tiles: a C++ integer or a value of the kernel.
class Coord {
 public:
  template <Literal N>
  Coord(N position, Location location = Location::current())
      : value_(Trace::current(location).literal(ElementType::i32, position, location)), location_(location) {
    static_assert(std::is_integral_v<N>, "tessera: an index is an integer or an Index");
  }
  template <TileExpr E>
  Coord(const E& position, Location location = Location::current())
      : value_(position.lower(Trace::current(location), location)), location_(location) {
    static_assert(std::is_same_v<typename E::type, i32> && E::rank == 0,
                  "tessera: an index is an Index: i32, rank 0; name a tile of indices: Tile rows = ...");
  }
  Handle value() const { return value_; }
  Location location() const { return location_; }

 private:
  Handle value_;
  Location location_;
};

namespace detail {

template <Element T, int R>
Tile<T, R> part(Trace& trace, Handle tile, std::vector<Handle> first, std::vector<std::int64_t> steps,
                const Shape& shape, Location location) {
  first.insert(first.begin(), tile);
  return Tile<T, R>(trace.apply(Op::extract, element_type<T>, first, steps, location, shape));
}

// Along one axis, elements `start`, `start + step`, ...; along the others, all.
template <TileExpr A>
Tile<typename A::type, A::rank> along_axis(const A& a, int axis, const Coord& start, int extent, int step,
                                           Location location) {
  Trace& trace = Trace::current(location);
  const Handle tile = a.lower(trace, location);
  Shape shape = trace.shape(tile, location);
  shape[axis] = extent;
  std::vector<Handle> first(A::rank, trace.literal(ElementType::i32, 0, location));
  std::vector<std::int64_t> steps(A::rank, 1);
  first[static_cast<std::size_t>(axis)] = start.value();
  steps[static_cast<std::size_t>(axis)] = step;
  return part<typename A::type, A::rank>(trace, tile, first, steps, shape, location);
}

// First element of the part at a tile position. Clamped, so that a position beyond the tile stays beyond it and the
// product does not overflow.
inline Handle start_of_part(Trace& trace, Handle position, int part, int extent, Location location) {
  const Index at(position), held(clamp(at, -1, cdiv(extent, part)), location);
  return (held * part).lower(trace, location);
}

}  // namespace detail

/// `extent` elements along an axis from `start` on, `step` apart (which may be negative). Error at trace time unless
/// all of them are in the tile.
template <TileExpr A>
Tile<typename A::type, A::rank> slice(const A& a, Axis axis, Count start, Count extent, Count step = 1) {
  Trace& trace = Trace::current(axis.location);
  const int normal = trace.axis(axis, A::rank, "slice");
  const Shape& shape = trace.shape(a.lower(trace, axis.location), axis.location);
  const std::int64_t last = start + (std::int64_t{extent} - 1) * step;
  if (extent < 1 || step == 0 || std::min<std::int64_t>(start, last) < 0 ||
      std::max<std::int64_t>(start, last) >= shape[normal])
    trace.fail(axis.location, "slice: " + std::to_string(extent) + " elements from " + std::to_string(start) +
                                  " on by steps of " + std::to_string(step) + " along axis " + std::to_string(normal) +
                                  " are not all in " + to_string(shape) + "; extract reads missing elements as 0");
  return detail::along_axis(a, normal, Coord(int{start}, axis.location), extent, step, axis.location);
}
/// The same from a start that the kernel computes. Elements outside of the tile are 0.
template <TileExpr A, TileExpr S>
Tile<typename A::type, A::rank> slice(const A& a, Axis axis, const S& start, Count extent, Count step = 1) {
  const int normal = Trace::current(axis.location).axis(axis, A::rank, "slice");
  return detail::along_axis(a, normal, Coord(start, axis.location), extent, step, axis.location);
}
/// Splits the tile into N equal parts along an axis: auto [a, b] = split<2>(x, 1). Error at trace time unless N divides
/// the extent.
template <int N, TileExpr A>
auto split(const A& a, Axis axis) {
  static_assert(N >= 1, "tessera: split takes the number of parts, as in split<2>(x, 1)");
  Trace& trace = Trace::current(axis.location);
  const int normal = trace.axis(axis, A::rank, "split");
  const Shape shape = trace.shape(a.lower(trace, axis.location), axis.location);
  const int extent = shape[normal] / N;
  if (extent * N != shape[normal])
    trace.fail(axis.location, "split: axis " + std::to_string(normal) + " of " + to_string(shape) +
                                  " cannot be split into " + std::to_string(N) + " equal parts; take slices");
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{
        detail::along_axis(a, normal, Coord(static_cast<int>(I) * extent, axis.location), extent, 1, axis.location)...};
  }
  (std::make_index_sequence<(N < 1 ? 1 : N)>());  // with no parts, report only the error above
}
/// The elements in reverse order along an axis.
template <TileExpr A>
Tile<typename A::type, A::rank> flip(const A& a, Axis axis) {
  Trace& trace = Trace::current(axis.location);
  const int normal = trace.axis(axis, A::rank, "flip");
  const int extent = trace.shape(a.lower(trace, axis.location), axis.location)[normal];
  return detail::along_axis(a, normal, Coord(extent - 1, axis.location), extent, -1, axis.location);
}
/// The elements rotated by `shift` along an axis: element i moves to (i + shift) modulo the extent.
template <TileExpr A>
Tile<typename A::type, A::rank> roll(const A& a, int shift, Axis axis) {
  Trace& trace = Trace::current(axis.location);
  const int normal = trace.axis(axis, A::rank, "roll");
  const int extent = trace.shape(a.lower(trace, axis.location), axis.location)[normal];
  const int first = (shift % extent + extent) % extent;  // the new position of element 0
  if (first == 0) return Tile<typename A::type, A::rank>(a.lower(trace, axis.location));
  return concat(Axis(normal, axis.location),
                detail::along_axis(a, normal, Coord(extent - first, axis.location), first, 1, axis.location),
                detail::along_axis(a, normal, Coord(0, axis.location), extent - first, 1, axis.location));
}
template <TileExpr A, Operand N>
requires(!detail::is_integer<N>) Tile<typename A::type, A::rank> roll(const A& a, const N&, Axis axis) {
  static_assert(detail::is_integer<N>,
                "tessera: roll's shift is a C++ integer; for a shift that the kernel computes, from 0 to less than the "
                "extent, write slice(concat(axis, x, x), axis, extent - shift, extent)");
  return Tile<typename A::type, A::rank>(a, axis.location);
}

/// The part of the given shape at tile position `at`, as load takes one from a tensor. Elements outside of the tile are
/// 0.
template <TileExpr A, int R>
Tile<typename A::type, R> extract(const A& a, const Coord (&at)[R], const Extent (&shape)[R],
                                  Location location = Location::current()) {
  static_assert(R == A::rank, "tessera: extract takes an index and an extent for each axis of the tile");
  Trace& trace = Trace::current(location);
  const Handle tile = a.lower(trace, location);
  std::vector<Handle> first;
  for (int axis = 0; axis < R; ++axis) {
    if (shape[axis] < 1)
      trace.fail(location, "extract: a part of shape " + to_string(detail::shape_of(shape)) +
                               "; every extent must be at least 1");
    first.push_back(
        detail::start_of_part(trace, at[axis].value(), shape[axis], trace.shape(tile, location)[axis], location));
  }
  return detail::part<typename A::type, R>(trace, tile, first, std::vector<std::int64_t>(R, 1), detail::shape_of(shape),
                                           location);
}
/// The tile with a part replaced at tile position `at`. Elements of the part outside of the tile are dropped.
template <TileExpr A, int R, TileExpr P>
Tile<typename A::type, R> insert(const A& a, const Coord (&at)[R], const P& part,
                                 Location location = Location::current()) {
  static_assert(R == A::rank && R == P::rank,
                "tessera: insert takes an index for each axis of the tile, and a part of the same rank");
  static_assert(std::same_as<typename A::type, typename P::type>,
                "tessera: the tile and the part have different element types; cast<T>(part)");
  Trace& trace = Trace::current(location);
  const Handle tile = a.lower(trace, location), inserted = part.lower(trace, location);
  const Shape shape = trace.shape(tile, location), of_part = trace.shape(inserted, location);
  // The part's elements, moved to their positions, and a mask of those positions.
  std::vector<Handle> first;
  Handle mask;
  for (int axis = 0; axis < R; ++axis) {
    const Index start(detail::start_of_part(trace, at[axis].value(), of_part[axis], shape[axis], location));
    first.push_back((-start).lower(trace, location));
    Shape line = Shape::of_rank(R);
    for (int i = 0; i < R; ++i) line[i] = i == axis ? shape[i] : 1;
    const Tile<i32, R> position(trace.apply(Op::iota, ElementType::i32, {}, {axis}, location, line));
    const Tile<pred, R> along((position >= start) & (position < start + of_part[axis]), location);
    mask = axis == 0 ? along.lower(trace, location) : (Tile<pred, R>(mask) & along).lower(trace, location);
  }
  const auto moved =
      detail::part<typename A::type, R>(trace, inserted, first, std::vector<std::int64_t>(R, 1), shape, location);
  return Tile<typename A::type, R>(where(Tile<pred, R>(mask), moved, Tile<typename A::type, R>(tile)), location);
}

/// The tile with one more axis, of extent 1, at `axis` of the result.
template <TileExpr A>
Tile<typename A::type, A::rank + 1> expand_dims(const A& a, Axis axis) {
  static_assert(A::rank < max_rank, "tessera: a tile has at most 6 axes");
  Trace& trace = Trace::current(axis.location);
  const int normal = trace.axis(axis, A::rank + 1, "expand_dims");
  const Handle tile = a.lower(trace, axis.location);
  Shape shape = Shape::of_rank(A::rank + 1);
  for (int i = 0; i < A::rank; ++i) shape[i < normal ? i : i + 1] = trace.shape(tile, axis.location)[i];
  shape[normal] = 1;
  return Tile<typename A::type, A::rank + 1>(
      trace.apply(Op::reshape, element_type<typename A::type>, {tile}, {}, axis.location, shape));
}
/// The tile without an axis, whose extent must be 1; error at trace time otherwise.
template <TileExpr A>
Tile<typename A::type, A::rank - 1> squeeze(const A& a, Axis axis) {
  static_assert(A::rank > 0, "tessera: squeeze takes a tile of rank 1 or more");
  Trace& trace = Trace::current(axis.location);
  const int normal = trace.axis(axis, A::rank, "squeeze");
  const Handle tile = a.lower(trace, axis.location);
  if (trace.shape(tile, axis.location)[normal] != 1)
    trace.fail(axis.location, "squeeze: axis " + std::to_string(normal) + " of " +
                                  to_string(trace.shape(tile, axis.location)) +
                                  " has more than one element; take one by slice, or sum them");
  Shape shape = Shape::of_rank(A::rank - 1);
  for (int i = 0; i < A::rank - 1; ++i) shape[i] = trace.shape(tile, axis.location)[i < normal ? i : i + 1];
  return Tile<typename A::type, A::rank - 1>(
      trace.apply(Op::reshape, element_type<typename A::type>, {tile}, {}, axis.location, shape));
}
/// Interleaves the elements of two tiles of one shape and type along an axis: a[0], b[0], a[1], b[1], ... Error at
/// trace time if the shapes differ.
template <TileExpr A, TileExpr B>
Tile<typename A::type, A::rank> interleave(const A& a, const B& b, Axis axis) {
  static_assert(std::same_as<typename A::type, typename B::type>,
                "tessera: interleave takes tiles of the same element type; cast<T>(x) one of them");
  static_assert(A::rank == B::rank, "tessera: interleave takes tiles of the same rank and shape");
  Trace& trace = Trace::current(axis.location);
  if constexpr (std::same_as<typename A::type, typename B::type> && A::rank == B::rank) {
    const Handle first = a.lower(trace, axis.location), second = b.lower(trace, axis.location);
    if (trace.shape(first, axis.location) != trace.shape(second, axis.location))
      trace.fail(axis.location, "interleave: tiles " + to_string(trace.shape(first, axis.location)) + " and " +
                                    to_string(trace.shape(second, axis.location)) + "; broadcast them to one shape");
    const int normal = trace.axis(axis, A::rank, "interleave");
    const Axis behind(normal + 1, axis.location);
    const auto pairs = concat(behind, expand_dims(a, behind), expand_dims(b, behind));
    Shape shape = trace.shape(first, axis.location);
    shape[normal] *= 2;
    return Tile<typename A::type, A::rank>(trace.apply(Op::reshape, element_type<typename A::type>,
                                                       {pairs.lower(trace, axis.location)}, {}, axis.location, shape));
  } else {
    return Tile<typename A::type, A::rank>(Handle());
  }
}

}  // namespace internal
}  // namespace tessera
