// A whole model: prompts, and token by token.
#pragma once
#include "common/row.hpp"
#include "tessera/model/gpt2.hpp"

namespace tessera::internal::bench {

/// Greedy tokens of one sequence behind `cached` positions, random weights, as a program gets them: the host reads each
/// and gives it back, so the row's times are of the host. Its work is the bytes of the weights that a token takes.
Row decode(const Gpt2Config& config, Compute compute, int cached);

/// Prompts of `length` tokens each, all at once, and the token behind each, as decode(). Its work is the operations.
Row prefill(const Gpt2Config& config, Compute compute, int batch, int length);

}  // namespace tessera::internal::bench
