// Steps between the accumulators of a tile that split-K divides among several CTAs and the epilogue.
#pragma once
#include <functional>

#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// Stores each CTA's partial of matmul `id`; the CTA of the first partial adds them up, and runs `late`.
void lower_shared_tile(Steps& steps, Id id, SplitK split_k, ValueId sums, const SplitKRange& share,
                       const std::function<void()>& late);

}  // namespace tessera::internal::lowering
