// A whole model, token by token.
#pragma once
#include "common/row.hpp"
#include "model/gpt2.hpp"

namespace tessera::bench {

/// Greedy tokens of one sequence behind `cached` positions, random weights, as a program gets them: the host reads each
/// and gives it back, so the row's times are of the host. Its work is the bytes of the weights that a token takes.
Row decode(const Gpt2Config& config, Compute compute, int cached);

}  // namespace tessera::bench
