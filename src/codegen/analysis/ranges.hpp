// Bounds of integers that are known before there is a launch.
#pragma once
#include <cstdint>

#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

/// From `least` to `most`, both included.
struct Range {
  std::int64_t least = 0, most = 0;
};

/// Bounds of an i32 number, or of the elements of a tile, that are computed from extents, block indices, indices,
/// elements of 8 or 16 bits and constants by addition, subtraction, multiplication, floor and ceiling division, minimum
/// and maximum, bitwise and, right shifts and selection. All of i32 if they are computed in another way or may wrap.
Range range_of(const GraphAnalysis& analysis, Id id);

}  // namespace tessera::internal::lowering
