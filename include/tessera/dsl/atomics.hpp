// Atomics: each element in memory is updated atomically, and its old value is returned.
#pragma once
#include "tessera/dsl/view.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {

// Operands of an atomic at a tile position: tiles broadcast to one shape, the view, one tile index for each axis.
inline std::vector<Handle> atomic_operands(Trace& trace, Op op, std::vector<Handle> tiles, Handle view,
                                           std::span<const Coord> at, Location location) {
  if (tiles.size() > 1) tiles = trace.stretched(op, std::move(tiles), location);
  tiles.push_back(view);
  for (const Coord& coord : at) tiles.push_back(coord.value());
  return tiles;
}
// The same for an atomic on elements: the tiles of indices are broadcast with the tiles to one shape.
template <class I, int N>
std::vector<Handle> atomic_operands(Trace& trace, Op op, std::vector<Handle> tiles, Handle view,
                                    std::span<const Tile<I, N>> at, Location location) {
  const auto count = static_cast<std::ptrdiff_t>(tiles.size());
  for (const Tile<I, N>& index : at) tiles.push_back(index_tile(trace, index, location));
  tiles = trace.stretched(op, std::move(tiles), location);
  tiles.insert(tiles.begin() + count, view);
  return tiles;
}

template <Element T, int R, class At>
OrderedTile<T, R> atomic(Op op, Handle view, std::vector<Handle> tiles, std::span<const At> at, MemoryOrder order,
                         MemoryScope scope, Location location) {
  Trace& trace = Trace::current(location);
  return OrderedTile<T, R>(trace.apply(op, element_type<T>,
                                       atomic_operands(trace, op, std::move(tiles), view, at, location),
                                       {static_cast<std::int64_t>(order), static_cast<std::int64_t>(scope)}, location));
}

template <class E, Element T>
constexpr void check_expected() {
  static_assert(std::same_as<typename E::type, T>,
                "tessera: the expected value and the tensor have different element types; cast<T>(tile)");
}

}  // namespace detail

// Each function has two forms. The first takes a tile position `at`, as store does. The second takes one tile of
// element indices, i32 or i64, for each axis of the view; these are named Tiles, and are broadcast to one shape
// together with the tile. Each element is updated atomically on its own. The result has the tile's shape and the view's
// element type: the values that memory held before. It must be named before use, or ignored. Elements outside of the
// view are not written, and their result is 0. If several elements have the same position, each one sees the result of
// another. Error at trace time if shapes do not broadcast.
#define ATOMIC_CHECKS(name, types)                                                                                 \
  static_assert(access == Access::in_out, "tessera: atomics work on an InOut");                                    \
  static_assert(accepts(Op::name, element_type<T>), "tessera: " #name " takes tensors of " types)
#define ATOMIC_IN_ORDER                                                             \
  MemoryOrder order = MemoryOrder::relaxed, MemoryScope scope = MemoryScope::device, \
  Location location = Location::current()
// Catches positions written without braces.
#define ATOMIC_PLACES(name, arguments)                                                                              \
  template <Access access, Element T, int R, TileExpr At, class... Tiles>                                           \
  void name(const TensorView<access, T, R>&, const At&, const Tiles&...) {                                          \
    static_assert(R == 0, "tessera: " #name " takes its position in braces, one index or one tile of indices for "  \
                          "each axis: " #name "(y, {i}, " arguments ")");                                           \
  }

#define ATOMIC_OF_TILE(name, types)                                                                                   \
  template <Access access, Element T, int R, TileExpr E>                                                              \
  OrderedTile<T, R> name(const TensorView<access, T, R>& view, const Coord(&at)[R], const E& tile, ATOMIC_IN_ORDER) { \
    ATOMIC_CHECKS(name, types);                                                                                       \
    detail::check_writable<access, T, R, E>();                                                                        \
    return detail::atomic<T, R, Coord>(Op::name, view.value(), {tile.lower(Trace::current(location), location)}, at,  \
                                       order, scope, location);                                                       \
  }                                                                                                                   \
  template <Access access, Element T, int R, IndexType I, int N, TileExpr E>                                          \
    requires(N > 0)                                                                                                   \
  OrderedTile<T, N> name(const TensorView<access, T, R>& view, const Tile<I, N>(&at)[R], const E& tile,               \
                         ATOMIC_IN_ORDER) {                                                                           \
    ATOMIC_CHECKS(name, types);                                                                                       \
    detail::check_writable<access, T, N, E>();                                                                        \
    return detail::atomic<T, N, Tile<I, N>>(Op::name##_elements, view.value(),                                        \
                                            {tile.lower(Trace::current(location), location)}, at, order, scope,       \
                                            location);                                                                \
  }                                                                                                                   \
  ATOMIC_PLACES(name, "x")

/// Adds the tile's element to memory's. Integers wrap; sums of floating-point numbers are rounded in the order in which
/// they happen.
ATOMIC_OF_TILE(atomic_add, "f32, f64, i32, i64, u32 or u64")
/// Stores the larger of both; a NaN loses.
ATOMIC_OF_TILE(atomic_max, "f32, f64, i32, i64, u32 or u64")
/// Stores the smaller of both; a NaN loses.
ATOMIC_OF_TILE(atomic_min, "f32, f64, i32, i64, u32 or u64")
/// Bitwise and.
ATOMIC_OF_TILE(atomic_and, "i32, i64, u32 or u64")
/// Bitwise or. With a tile of zeros it reads values that other CTAs change.
ATOMIC_OF_TILE(atomic_or, "i32, i64, u32 or u64")
/// Bitwise exclusive or.
ATOMIC_OF_TILE(atomic_xor, "i32, i64, u32 or u64")
/// Stores the tile's element.
ATOMIC_OF_TILE(atomic_exchange, "f32, f64, i32, i64, u32 or u64")

/// Stores the element of `desired` where memory has the same bits as the element of `expected` (bits, also for
/// floating-point types); elsewhere memory is unchanged. Both tiles are broadcast to one shape. The exchange took place
/// where the result has the bits of `expected`.
template <Access access, Element T, int R, TileExpr Expected, TileExpr E>
OrderedTile<T, R> atomic_compare_exchange(const TensorView<access, T, R>& view, const Coord (&at)[R],
                                          const Expected& expected, const E& desired, ATOMIC_IN_ORDER) {
  ATOMIC_CHECKS(atomic_compare_exchange, "f32, f64, i32, i64, u32 or u64");
  detail::check_writable<access, T, R, E>();
  detail::check_expected<Expected, T>();
  Trace& trace = Trace::current(location);
  return detail::atomic<T, R, Coord>(Op::atomic_compare_exchange, view.value(),
                                     {desired.lower(trace, location), expected.lower(trace, location)}, at, order,
                                     scope, location);
}
template <Access access, Element T, int R, IndexType I, int N, TileExpr Expected, TileExpr E>
  requires(N > 0)
OrderedTile<T, N> atomic_compare_exchange(const TensorView<access, T, R>& view, const Tile<I, N> (&at)[R],
                                          const Expected& expected, const E& desired, ATOMIC_IN_ORDER) {
  ATOMIC_CHECKS(atomic_compare_exchange, "f32, f64, i32, i64, u32 or u64");
  detail::check_writable<access, T, N, E>();
  detail::check_expected<Expected, T>();
  Trace& trace = Trace::current(location);
  return detail::atomic<T, N, Tile<I, N>>(Op::atomic_compare_exchange_elements, view.value(),
                                          {desired.lower(trace, location), expected.lower(trace, location)}, at, order,
                                          scope, location);
}
ATOMIC_PLACES(atomic_compare_exchange, "expected, desired")

#undef ATOMIC_OF_TILE
#undef ATOMIC_PLACES
#undef ATOMIC_IN_ORDER
#undef ATOMIC_CHECKS

}  // namespace internal
}  // namespace tessera
