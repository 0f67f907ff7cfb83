// The ops on whole tiles: which elements are combined.
#pragma once
#include <span>
#include <vector>

#include "reference/element.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::reference {

struct Tile {
  ElementType type{};
  Shape shape;
  std::vector<Element> elements;  ///< row-major

  Tile() = default;
  Tile(ElementType element, const Shape& extents, const Element& value = {})
      : type(element), shape(extents), elements(static_cast<std::size_t>(extents.size()), value) {}
  /// The element of a tile with a single one.
  const Element& item() const { return elements[0]; }
};

/// Steps between the elements of a row-major array along each axis.
std::vector<std::int64_t> row_major(std::span<const std::int64_t> extents);
/// The coordinates of element i of a row-major array.
std::vector<std::int64_t> coordinates(std::int64_t i, std::span<const std::int64_t> extents);

Tile unary(Op op, const Tile& a);
Tile binary(Op op, const Tile& a, const Tile& b);
Tile ternary(Op op, const Tile& a, const Tile& b, const Tile& c);
Tile select(const Tile& condition, const Tile& a, const Tile& b);
/// A user-defined function: evaluates its own C++, for elements that are known exactly.
Tile custom(const CustomFunction& function, std::span<const Tile* const> in);
Tile cast(const Tile& a, ElementType to);
Tile bitcast(const Tile& a, ElementType to);
Tile iota(const Shape& shape, int axis);
Tile broadcast(const Tile& a, const Shape& shape);
/// Axis i of the result is axis axes[i] of the tile.
Tile permute(const Tile& a, std::span<const std::int64_t> axes);
Tile concat(std::span<const Tile* const> parts, int axis);
/// Elements first + i * step along each axis; 0 outside of the tile. Unknown indices may be any.
Tile extract(const Tile& a, std::span<const Element> first, std::span<const std::int64_t> steps, const Shape& shape);
/// Elements at positions along the axis, 0 outside of the tile.
Tile take_along_axis(const Tile& a, const Tile& positions, int axis);
Tile reduce(Op op, const Tile& a, int axis);
Tile argmax(const Tile& a, int axis);
Tile scan(Op op, const Tile& a, int axis, ScanOptions options);
/// order.cpp: the first elements of each sorted line, as many as the shape has; and their indices.
Tile sort(const Tile& a, int axis, SortOptions options, const Shape& shape);
Tile argsort(const Tile& a, int axis, SortOptions options, const Shape& shape);
/// The histogram of each line, for as many numbers as the shape has.
Tile histogram(const Tile& a, int axis, const Shape& shape);
/// The last position in each line of each of these numbers, or -1.
Tile inverse_permutation(const Tile& a, int axis, const Shape& shape);
Tile mma(const Tile& a, const Tile& b, const Tile& c);

}  // namespace tessera::internal::reference
