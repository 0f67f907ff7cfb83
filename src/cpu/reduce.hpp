// Reductions and scans along one axis of a value.
#pragma once
#include <array>
#include <cstdint>

#include "graph/graph.hpp"

namespace tessera::cpu {

/// A value in memory seen as lines along an axis; strides in elements.
struct Lines {
  const char* data;
  std::array<std::int64_t, max_rank> stride;
  Shape shape;
  int axis;
};

/// An axis as the index of an array.
inline std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

/// Results are dense, the axis kept with extent 1 (of scans: as it is).
void reduce(Op op, ElementType type, const Lines& lines, char* out);
void argmax(ElementType type, const Lines& lines, std::int32_t* out);
void scan(Op op, ElementType type, const Lines& lines, ScanOptions options, char* out);

}  // namespace tessera::cpu
