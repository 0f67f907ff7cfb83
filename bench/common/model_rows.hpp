// Whole models with random weights, as a program runs them; the times are of the host.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// The rows of every run, followed by the group "forward":
/// - decode: greedy tokens after `cached` positions; the host reads each and feeds it back. Its work is the bytes of
///   the weights and of the cache that a step reads.
/// - prefill: prompts processed at once, and the token after each. Its work is the operations.
/// - forward: logits at every position of new prompts, left on the device, of the 36 models and shapes that cutileGPT
///   published. Its work is the operations.
std::vector<Row> model_rows(bool small);

}  // namespace tessera::internal::bench
