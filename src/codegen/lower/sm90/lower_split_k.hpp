// Between the sums of a tile whose rounds several blocks of threads share, and what follows them.
#pragma once
#include <functional>

#include "codegen/lower/lower_steps.hpp"

namespace tessera::internal::lowering {

/// Each block's part of the sums of product `id`; the first block adds them up, and does what is `late`.
void lower_shared_tile(Steps& steps, Id id, SplitK split_k, ValueId sums, const SplitKRange& share,
                       const std::function<void()>& late);

}  // namespace tessera::internal::lowering
