// Reductions and scans with an author's own combining function, over one tile or several.
#pragma once
#include <functional>
#include <tuple>

#include "tessera/dsl/parts.hpp"
#include "tessera/dsl/reductions.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

namespace detail {

/// Combines tiles of one shape along an axis, pairwise. Neighbors are combined first, then their results, so the
/// function need not be commutative.
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

// Calls `run` on the tiles and returns its results as typed tiles. The function takes one tile for each operand or, for
// several tiles, tuples of them.
template <class F, class Run, TileExpr... A>
auto combine(const std::tuple<A...>& tiles, Axis axis, const F& function, std::vector<Number> identities,
             std::string_view what, const Run& run) {
  constexpr int rank = std::tuple_element_t<0, std::tuple<A...>>::rank;
  static_assert(((A::rank == rank) && ...), "tessera: the combined tiles must have the same rank");
  Trace& trace = Trace::current(axis.location);
  using Indices = std::index_sequence_for<A...>;
  const auto typed = []<std::size_t... I>(const Combination::Handles& handles, std::index_sequence<I...>) {
    return std::tuple<Tile<typename A::type, rank>...>(Tile<typename A::type, rank>(handles[I])...);
  };
  const auto lowered = [&]<class... E>(const std::tuple<E...>& results) {
    constexpr bool fits = std::is_same_v<std::tuple<typename E::type...>, std::tuple<typename A::type...>>;
    static_assert(fits, "tessera: the function must return, for each tile, an expression of the tile's element type");
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

/// Reduces several tiles of one shape along the axis, which keeps extent 1. function(a, b) takes two tuples of tiles
/// and returns a tuple of expressions of the same element types, element by element. It must be associative; there is
/// one identity for each tile, and combining with it must change nothing.
template <TileExpr... A, class F, std::size_t N>
auto reduce(const std::tuple<A...>& tiles, Axis axis, const F& function, const Number (&identities)[N]) {
  static_assert(N == sizeof...(A), "tessera: reduce takes an identity for each tile");
  return detail::combine(tiles, axis, function, {identities, identities + N}, "reduce",
                         [](const detail::Combination& c) { return c.reduce(); });
}
template <TileExpr... A, class F, Literal N, class... Options>
auto reduce(const std::tuple<A...>& tiles, Axis, const F&, const N&, const Options&...) {
  static_assert(!std::same_as<N, N>, "tessera: with several tiles, write the identities in braces, one for each: {0, "
                                     "0}");
  return tiles;
}
/// For one tile: function(a, b) takes two tiles and returns an expression.
template <TileExpr A, class F>
auto reduce(const A& tile, Axis axis, const F& function, Number identity) {
  return std::get<0>(detail::combine(std::tuple(tile), axis, function, {identity}, "reduce",
                                     [](const detail::Combination& c) { return c.reduce(); }));
}

/// Inclusive scan along the axis: each element combined with those before it. Operands, function and identities are
/// those of reduce; the results have the shape of the tiles. `options` selects a reverse or an exclusive scan.
template <TileExpr... A, class F, std::size_t N>
auto scan(const std::tuple<A...>& tiles, Axis axis, const F& function, const Number (&identities)[N],
          ScanOptions options = {}) {
  static_assert(N == sizeof...(A), "tessera: scan takes an identity for each tile");
  return detail::combine(tiles, axis, function, {identities, identities + N}, "scan",
                         [&](const detail::Combination& c) { return c.scan(options); });
}
template <TileExpr... A, class F, Literal N, class... Options>
auto scan(const std::tuple<A...>& tiles, Axis, const F&, const N&, const Options&...) {
  static_assert(!std::same_as<N, N>, "tessera: with several tiles, write the identities in braces, one for each: {0, "
                                     "0}");
  return tiles;
}
template <TileExpr A, class F>
auto scan(const A& tile, Axis axis, const F& function, Number identity, ScanOptions options = {}) {
  return std::get<0>(detail::combine(std::tuple(tile), axis, function, {identity}, "scan",
                                     [&](const detail::Combination& c) { return c.scan(options); }));
}

}  // namespace internal
}  // namespace tessera
