// Programs that compute the same, and that can be fused better.
#pragma once
#include "tensors/tensor_program.hpp"

namespace tessera::internal {

/// Moves reshapes ahead of elementwise ops, up to inputs, where they are views, or else behind them; and concatenations
/// behind elementwise ops and permutations, so that each part is computed where the result is.
TensorProgram simplified(const TensorProgram& program);
/// Splits reductions of many elements to few, which would leave most of the multiprocessors idle, into partial ones and
/// a last one.
TensorProgram split_reductions(const TensorProgram& program, int multiprocessors);

}  // namespace tessera::internal
