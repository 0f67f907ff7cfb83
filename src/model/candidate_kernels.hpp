// A draw among the few most probable tokens: many CTAs find them, and one draws. kernels::sample draws among any
// number, in one CTA.
#pragma once
#include "model/kernels.hpp"

namespace tessera::internal::kernels {

/// The largest top-k of such a draw, and the logits among which a warp finds as many.
constexpr int most_candidates = 64, columns_of_candidates = 1024;
constexpr int candidate_parts(int vocab) { return ceil_div(vocab, columns_of_candidates); }

/// For each part of logits [B,N], the best tokens of the first `vocab` columns and their scores, best first, the lowest
/// token first among equals: tokens, scores [B parts,most_candidates]. Tokens in seen [B,N] are penalized. A logit that
/// is not finite is the best, as token -1.
inline auto candidates(int vocab) {
  const int parts = candidate_parts(vocab);
  return kernel("candidates", [=](In<f32, 2> logits, Optional<In<u8, 2>> seen, Out<i32, 2> tokens, Out<f32, 2> scores,
                                  Scalar<f32> penalty) {
    constexpr int columns = columns_of_candidates;
    auto [b, part] = blocks(logits.extent(0), parts);
    Tile raw = load(logits, {b, part}, {1, columns});
    Tile finite = (raw < inf) & (raw > -inf);
    Tile token = part * columns + iota({1, columns}, 1);
    Tile score = where(finite, penalized(raw, load(seen, {b, part}, {1, columns}), penalty), inf);
    auto [best, at] = top_k(Tile(where(token < vocab, score, -inf)), most_candidates, 1);
    Tile of_token = where(finite, token, -1);
    store(scores, {b * parts + part, 0}, best);
    store(tokens, {b * parts + part, 0}, take_along_axis(of_token, at, 1));
  });
}

/// token [B] drawn as kernels::sample does, for a top-k of 1 to most_candidates, from the candidates [B,parts
/// most_candidates] of each sequence.
inline auto sample_candidates(int vocab) {
  const int all = candidate_parts(vocab) * most_candidates, rows = ceil_div(all, columns_of_candidates);
  return kernel("sample_candidates",
                [=](In<i32, 2> tokens, In<f32, 2> scores, In<i32, 1> past, In<i64, 1> keys, Out<i32, 1> token,
                    Out<i32, 1> chosen, Scalar<f32> temperature, Scalar<i32> k, Scalar<f32> top_p, Scalar<f32> min_p) {
    constexpr int columns = columns_of_candidates, most = most_candidates;
    Index b = blocks(tokens.extent(0));
    Tile score = reshape(load(scores, {b, 0}, {1, rows * columns}, -inf), {rows, columns});
    Tile id = reshape(load(tokens, {b, 0}, {1, rows * columns}), {rows, columns});
    auto [best, at] = top_k(score, most, 1);
    auto [top, from] = top_k(reshape(best, {1, rows * most}), most, 1);
    Tile ids = take_along_axis(Tile(reshape(take_along_axis(id, at, 1), {1, rows * most})), from, 1);
    // At most 0, however small the temperature is.
    Tile weight = where(iota({1, most}, 1) < k, exp((top - max(top, 1)) / temperature), 0.0f);
    Tile p = weight / sum(weight, 1);
    Tile nucleus = (cumsum(p, 1, {.exclusive = true}) < top_p) | (top_p >= 1.0f);
    Tile kept = nucleus & (p >= min_p * max(p, 1)) & (p > 0.0f);
    Tile key = item(load(keys, {b}, {1}));
    Tile word = (cast<i64>(item(load(past, {b}, {1}))) * vocab + cast<i64>(ids)) * 2;
    Tile race = where(kept, p / exponential(random_bits(key, word), random_bits(key, word + 1)), -1.0f);
    Tile drawn = sum(where(iota({1, most}, 1) == argmax(race, 1), ids, 0), 1);
    Tile result = reshape(where(min(ids, axis(1)) < 0, -1, drawn), {1});
    store(token, {b}, result);
    store(chosen, {b}, result);
  });
}

}  // namespace tessera::internal::kernels
