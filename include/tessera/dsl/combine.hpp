// Reductions and scans by an author's own function of elements of one tile or of several.
#pragma once
#include <functional>
#include <tuple>

#include "tessera/dsl/parts.hpp"
#include "tessera/dsl/reductions.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {

/// Tiles of one shape along an axis, combined two elements of each at a time. Neighbours go first, then what they came
/// to, so that the function need not be commutative.
class Combination {
 public:
  using Handles = std::vector<Handle>;
  using Combine = std::function<Handles(const Handles& before, const Handles& behind)>;
  /// Error unless the tiles have one shape.
  Combination(Handles tiles, std::vector<ElementType> types, std::vector<Number> identities, Axis axis, int rank,
              std::string_view what, Combine combine);
  Handles reduce() const;
  Handles scan(ScanOptions options) const;

 private:
  Handles nothing(int count) const;
  Handles part(const Handles& of, int start, int count, int step = 1) const;
  Handles joined(const Handles& a, const Handles& b) const;
  Handles combined(const Handles& before, const Handles& behind) const;
  Handles moved(const Handles& tiles, int by, bool reverse) const;
  Shape with_extent(int count) const;

  Trace& trace_;
  const Handles tiles_;
  const std::vector<ElementType> types_;
  const std::vector<Number> identities_;
  const std::string_view what_;
  const Combine combine_;
  const Location location_;
  const int axis_;
  const Shape shape_;
};

// What `run` makes of the tiles, typed as they are. The function gets a tile of each, or, of several, tuples of them.
template <class F, class Run, TileExpr... A>
auto combine(const std::tuple<A...>& tiles, Axis axis, const F& function, std::vector<Number> identities,
             std::string_view what, const Run& run) {
  constexpr int rank = std::tuple_element_t<0, std::tuple<A...>>::rank;
  static_assert(((A::rank == rank) && ...), "tessera: the tiles that are combined have one rank");
  Trace& trace = Trace::current(axis.location);
  using Indices = std::index_sequence_for<A...>;
  const auto typed = []<std::size_t... I>(const Combination::Handles& handles, std::index_sequence<I...>) {
    return std::tuple<Tile<typename A::type, rank>...>(Tile<typename A::type, rank>(handles[I])...);
  };
  const auto lowered = [&]<class... E>(const std::tuple<E...>& results) {
    constexpr bool fits = std::is_same_v<std::tuple<typename E::type...>, std::tuple<typename A::type...>>;
    static_assert(fits, "tessera: the function gives for each tile an expression of the tile's element type");
    return std::apply(
        [&](const auto&... result) { return Combination::Handles{result.lower(trace, axis.location)...}; }, results);
  };
  const Combination combination(lowered(tiles), {element_type<typename A::type>...}, std::move(identities), axis, rank,
                                what, [&](const Combination::Handles& before, const Combination::Handles& behind) {
                                  const auto a = typed(before, Indices()), b = typed(behind, Indices());
                                  if constexpr (sizeof...(A) == 1)
                                    return lowered(std::tuple(function(std::get<0>(a), std::get<0>(b))));
                                  else
                                    return lowered(function(a, b));
                                });
  return typed(run(combination), Indices());
}

}  // namespace detail

/// The elements of several tiles of one shape combined along the axis, which they keep with extent 1: function(a, b)
/// takes two tuples of tiles and gives one of expressions, element by element. It is associative, and the identities,
/// one for each tile, change nothing that they are combined with.
template <TileExpr... A, class F, std::size_t N>
auto reduce(const std::tuple<A...>& tiles, Axis axis, const F& function, const Number (&identities)[N]) {
  static_assert(N == sizeof...(A), "tessera: reduce takes an identity for each tile");
  return detail::combine(tiles, axis, function, {identities, identities + N}, "reduce",
                         [](const detail::Combination& c) { return c.reduce(); });
}
template <TileExpr... A, class F, Literal N, class... Options>
auto reduce(const std::tuple<A...>& tiles, Axis, const F&, const N&, const Options&...) {
  static_assert(!std::same_as<N, N>, "tessera: of several tiles the identities stand in braces, one for each: {0, 0}");
  return tiles;
}
/// Of one tile: function(a, b) takes two tiles and gives an expression.
template <TileExpr A, class F>
auto reduce(const A& tile, Axis axis, const F& function, Number identity) {
  return std::get<0>(detail::combine(std::tuple(tile), axis, function, {identity}, "reduce",
                                     [](const detail::Combination& c) { return c.reduce(); }));
}

/// What each element and those before it along the axis come to, of several tiles or of one, as of reduce.
template <TileExpr... A, class F, std::size_t N>
auto scan(const std::tuple<A...>& tiles, Axis axis, const F& function, const Number (&identities)[N],
          ScanOptions options = {}) {
  static_assert(N == sizeof...(A), "tessera: scan takes an identity for each tile");
  return detail::combine(tiles, axis, function, {identities, identities + N}, "scan",
                         [&](const detail::Combination& c) { return c.scan(options); });
}
template <TileExpr... A, class F, Literal N, class... Options>
auto scan(const std::tuple<A...>& tiles, Axis, const F&, const N&, const Options&...) {
  static_assert(!std::same_as<N, N>, "tessera: of several tiles the identities stand in braces, one for each: {0, 0}");
  return tiles;
}
template <TileExpr A, class F>
auto scan(const A& tile, Axis axis, const F& function, Number identity, ScanOptions options = {}) {
  return std::get<0>(detail::combine(std::tuple(tile), axis, function, {identity}, "scan",
                                     [&](const detail::Combination& c) { return c.scan(options); }));
}

}  // namespace internal
}  // namespace tessera
