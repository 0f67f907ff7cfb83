// A view divided into tiles of one shape.
#pragma once
#include "tessera/dsl/atomics.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// A view divided into tiles of one shape: auto tiles = x.tiles({bm, bn}); tiles.load({i, j}).
template <Access access_, class T, int R>
class TiledView {
 public:
  TiledView(const TensorView<access_, T, R>& view, const Extent (&shape)[R]) : view_(view) {
    std::copy(std::begin(shape), std::end(shape), std::begin(shape_));
  }
  /// The number of tiles along an axis; a tile that is only partly inside counts.
  Index count(Axis axis) const {
    const int normal = Trace::current(axis.location).axis(axis, R, "count");
    return Index(cdiv(view_.extent(Axis(normal, axis.location)), int{shape_[normal]}), axis.location);
  }
  auto load(const Coord (&at)[R], Number padding = 0, Location location = Location::current()) const {
    return tessera::internal::load(view_, at, shape_, padding, location);
  }
  /// Error at trace time if the tile has another shape.
  template <TileExpr E>
  void store(const Coord (&at)[R], const E& tile, Location location = Location::current()) const {
    detail::check_writable<access_, T, R, E>();
    check_shape("store", tile, location);
    tessera::internal::store(view_, at, tile, location);
  }

// The atomics of these names at a tile position; error at trace time as for store.
#define ATOMIC_OF_TILES(name)                                                                             \
  template <TileExpr E>                                                                                   \
  auto name(const Coord (&at)[R], const E& tile, MemoryOrder order = MemoryOrder::relaxed,                \
            MemoryScope scope = MemoryScope::device, Location location = Location::current()) const {     \
    check_shape(#name, tile, location);                                                                   \
    return tessera::internal::name(view_, at, tile, order, scope, location);                              \
  }
  ATOMIC_OF_TILES(atomic_add)
  ATOMIC_OF_TILES(atomic_max)
  ATOMIC_OF_TILES(atomic_min)
  ATOMIC_OF_TILES(atomic_and)
  ATOMIC_OF_TILES(atomic_or)
  ATOMIC_OF_TILES(atomic_xor)
  ATOMIC_OF_TILES(atomic_exchange)
#undef ATOMIC_OF_TILES
  /// `expected` is broadcast to the shape of `desired`.
  template <TileExpr Expected, TileExpr E>
  auto atomic_compare_exchange(const Coord (&at)[R], const Expected& expected, const E& desired,
                               MemoryOrder order = MemoryOrder::relaxed, MemoryScope scope = MemoryScope::device,
                               Location location = Location::current()) const {
    check_shape("atomic_compare_exchange", desired, location);
    return tessera::internal::atomic_compare_exchange(view_, at, expected, desired, order, scope, location);
  }

 private:
  template <TileExpr E>
  void check_shape(std::string_view op, const E& tile, Location location) const {
    Trace& trace = Trace::current(location);
    const Shape &given = trace.shape(tile.lower(trace, location), location), shape = detail::shape_of(shape_);
    if (given != shape)
      trace.fail(location, std::string(op) + ": a tile of " + to_string(given) + " among tiles of " + to_string(shape) +
                               "; it would go to a different position");
  }

  TensorView<access_, T, R> view_;
  Extent shape_[R];
};
template <Access access_, class T, int R>
TiledView<access_, T, R> TensorView<access_, T, R>::tiles(const Extent (&shape)[R], Location) const {
  return TiledView<access_, T, R>(*this, shape);
}

}  // namespace internal
}  // namespace tessera
