// Type and shape inference: the element type and shape of an op's result.
#pragma once
#include <span>
#include <stdexcept>

#include "tessera/graph/graph.hpp"

namespace tessera::internal {

/// Operands that an op cannot take. The text names them with their shapes and how to fix it, but without the location.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Shape of the result. `requested` is the shape of ops that are given one (load, full, iota, reshape, broadcast).
Shape infer_shape(const Graph& graph, Op op, std::span<const Id> in, std::span<const std::int64_t> attr,
                  const Shape& requested);

/// Throws Mismatch unless a tile may have this shape: extents of at least 1, at most 2^30 elements.
void check_tile(Op op, const Shape& shape);

/// Throws Mismatch unless the op takes operands of these element types and returns `type`.
void check_types(const Graph& graph, Op op, ElementType type, std::span<const Id> in);

/// NumPy's rule; throws Mismatch.
Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view what);

}  // namespace tessera::internal
