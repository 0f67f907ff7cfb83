// What is known of numbers before there is a launch: between which bounds each lies.
#pragma once
#include <cstdint>

#include "codegen/analysis/graph_analysis.hpp"

namespace tessera::internal::lowering {

/// From `least` to `most`, both included.
struct Range {
  std::int64_t least = 0, most = 0;
};

/// Of an i32 number made of extents, block indices and constants by sums, products, quotients, minima and maxima;
/// anything 32 bits hold, if it is made of something else or may wrap on the way.
Range range_of(const GraphAnalysis& analysis, Id id);

}  // namespace tessera::internal::lowering
