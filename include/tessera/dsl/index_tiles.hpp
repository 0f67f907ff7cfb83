// Tiles of indices, and gather and scatter within a tile by them.
#pragma once
#include "tessera/dsl/tile.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The element types of index tiles.
template <class T>
concept IndexType = std::same_as<T, i32> || std::same_as<T, i64>;

namespace detail {

// An index tile as i32. Axes have fewer than 2^31 elements, so an i64 that is out of range stays so when it is clamped.
template <TileExpr E>
Handle index_tile(Trace& trace, const E& index, Location location) {
  if constexpr (std::same_as<typename E::type, i64>)
    return cast<i32>(clamp(index, -1, std::numeric_limits<i32>::max())).lower(trace, location);
  else
    return index.lower(trace, location);
}
template <class A, class I>
constexpr void check_index() {
  static_assert(IndexType<typename I::type>, "tessera: indices are a tile of i32 or i64");
  static_assert(A::rank == I::rank && A::rank > 0, "tessera: the tile and the indices have one rank, of 1 or more");
}
// Two tiles, broadcast to each other along all axes but one.
inline std::pair<Handle, Handle> across_axis(Trace& trace, Handle a, Handle b, int axis, Location location) {
  const Shape of_a = trace.shape(a, location), of_b = trace.shape(b, location);
  const auto stretched = [&](Handle tile, const Shape& from, const Shape& other) {
    Shape to = from;
    for (int i = 0; i < from.rank(); ++i)
      if (i != axis && from[i] == 1) to[i] = other[i];
    return to == from ? tile : trace.apply(Op::broadcast, trace.type(tile, location), {tile}, {}, location, to);
  };
  return {stretched(a, of_a, of_b), stretched(b, of_b, of_a)};
}

}  // namespace detail

/// The inverse of a permutation along the axis: element p[i] of the result is i. The tile is i32 or i64, the result
/// i32, with the given extent along the axis. If several elements are the same number, the last of their positions is
/// taken; where no element is, the result is -1. Numbers outside of the extent are ignored. Error at trace time if the
/// extent is less than 1.
template <TileExpr P>
Tile<i32, P::rank> inverse_permutation(const P& p, Count extent, Axis axis) {
  static_assert(IndexType<typename P::type>, "tessera: a permutation is a tile of i32 or i64");
  Trace& trace = Trace::current(axis.location);
  const Handle tile = detail::index_tile(trace, p, axis.location);
  const int normal = trace.axis(axis, P::rank, "inverse_permutation");
  Shape shape = trace.shape(tile, axis.location);
  shape[normal] = extent;
  return Tile<i32, P::rank>(
      trace.apply(Op::inverse_permutation, ElementType::i32, {tile}, {normal}, axis.location, shape));
}
/// The same with the tile's own extent.
template <TileExpr P>
Tile<i32, P::rank> inverse_permutation(const P& p, Axis axis) {
  const Tile<typename P::type, P::rank> tile(p, axis.location);
  Trace& trace = Trace::current(axis.location);
  const Shape& shape = trace.shape(tile.lower(trace, axis.location), axis.location);
  return inverse_permutation(tile, int{shape[trace.axis(axis, P::rank, "inverse_permutation")]}, axis);
}

/// Gathers within a tile: element (.., i, ..) of the result is element (.., indices(.., i, ..), ..) of the tile, where
/// i is the position along the axis; 0 where the index, an i32 or i64, is outside of the extent. Both have one rank;
/// along the other axes their extents are equal or one is 1, which is broadcast. The result has the extent of `indices`
/// along the axis: take_along_axis(x, argsort(x, 1), 1) is sort(x, 1). (NumPy's function, but a negative index is
/// outside.) Error at trace time if the extents do not fit.
template <TileExpr A, TileExpr I>
Tile<typename A::type, A::rank> take_along_axis(const A& a, const I& indices, Axis axis) {
  detail::check_index<A, I>();
  Trace& trace = Trace::current(axis.location);
  const int normal = trace.axis(axis, A::rank, "take_along_axis");
  auto [tile, at] = detail::across_axis(trace, a.lower(trace, axis.location),
                                        detail::index_tile(trace, indices, axis.location), normal, axis.location);
  return Tile<typename A::type, A::rank>(
      trace.apply(Op::take_along_axis, element_type<typename A::type>, {tile, at}, {normal}, axis.location));
}

/// Scatters within a tile: the tile with element (.., indices(.., i, ..), ..) replaced by element (.., i, ..) of
/// `values`, where i is the position along the axis. If several values go to one element, the last of them is kept;
/// those whose index, an i32 or i64, is outside of the extent are dropped. `values` and `indices` are broadcast to one
/// shape; along the other axes it and the tile are broadcast as in take_along_axis. Error at trace time if the extents
/// do not fit.
template <TileExpr A, TileExpr I, TileExpr V>
Tile<typename A::type, A::rank> put_along_axis(const A& a, const I& indices, const V& values, Axis axis) {
  detail::check_index<A, I>();
  static_assert(std::same_as<typename A::type, typename V::type>,
                "tessera: the tile and the values have different element types; cast<T>(values)");
  static_assert(V::rank <= A::rank, "tessera: the values have a higher rank than the tile; reshape them");
  Trace& trace = Trace::current(axis.location);
  const int normal = trace.axis(axis, A::rank, "put_along_axis");
  const std::vector<Handle> moved = trace.stretched(
      Op::take_along_axis, {values.lower(trace, axis.location), detail::index_tile(trace, indices, axis.location)},
      axis.location);
  const auto [tile, at] = detail::across_axis(trace, a.lower(trace, axis.location), moved[1], normal, axis.location);
  const auto [to, value] = detail::across_axis(trace, tile, moved[0], normal, axis.location);
  const int extent = trace.shape(to, axis.location)[normal];
  const Tile<i32, A::rank> from = inverse_permutation(Tile<i32, A::rank>(at), extent, Axis(normal, axis.location));
  const auto taken = take_along_axis(Tile<typename A::type, A::rank>(value), from, Axis(normal, axis.location));
  return Tile<typename A::type, A::rank>(where(from >= 0, taken, Tile<typename A::type, A::rank>(to)), axis.location);
}

}  // namespace internal
}  // namespace tessera
