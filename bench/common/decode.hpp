// A whole model: prompts, and decoding token by token.
#pragma once
#include "common/row.hpp"
#include "tessera/model/gpt2.hpp"

namespace tessera::internal::bench {

/// Greedy tokens of one sequence after `cached` positions, with random weights, as a program gets them: the host reads
/// each token and feeds it back, so the row's times are host times. Its work is the bytes of the weights that a token
/// reads.
Row decode(const Gpt2Config& config, Compute compute, int cached);

/// Prompts of `length` tokens each, processed at once, and the token after each, as decode(). Its work is the
/// operations.
Row prefill(const Gpt2Config& config, Compute compute, int batch, int length);

}  // namespace tessera::internal::bench
