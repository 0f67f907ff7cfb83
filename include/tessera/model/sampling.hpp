// Sampling: how the next token is chosen from the logits.
#pragma once
#include <cstdint>

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// Applied in the order of transformers (generation/utils.py): repetition penalty, temperature, top-k, top-p, min-p.
struct Sampling {
  float temperature = 0;         ///< 0: greedy, the most probable token
  std::int32_t top_k = 0;        ///< only the k most probable; 0: all
  float top_p = 1;               ///< only the most probable that make up this mass; 1: all
  float repetition_penalty = 1;  ///< above 1: tokens of the text so far become less likely
  std::uint64_t seed = 0;        ///< same seed, same text
  float min_p = 0;               ///< only tokens whose probability is at least this multiple of the highest one; 0: all
};

/// Error that names the value and the allowed range, unless temperature >= 0, top_k >= 0, 0 < top_p <= 1, 0 <= min_p <=
/// 1, 0.01 <= penalty <= 100.
void check(const Sampling& sampling);

}  // namespace internal
}  // namespace tessera
