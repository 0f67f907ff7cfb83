// Attention, as its author would write it.
#pragma once
#include "tessera/tessera.hpp"

namespace tessera::internal::bench {

inline constexpr int window = 1024;
enum class Seen : std::uint8_t { causal, full, window, cached };

/// softmax(q k^T scale) v, online (Dao et al., 2022): q and o are [batch, heads, queries, d]; k and v [batch, heads,
/// positions, d] have fewer heads, each shared by `group` heads of q. Packed: q and o are [batch, queries, heads, d],
/// and the rows of a tile are queries and the heads of a group (FlashAttention: pack_gqa).
inline auto attention_kernel(AttentionTiles tiles, int d, Seen kind, int group, bool packed) {
  return kernel("attention", [=](In<bf16, 4> q, In<bf16, 4> k, In<bf16, 4> v, Out<bf16, 4> o, Scalar<f32> scale) {
    require(q.extent(3) == d, "heads as wide as the kernel was made for");
    if (tiles.blocks > 0) hints({.occupancy = tiles.blocks});
    const int bm = tiles.queries, bn = tiles.keys, positions = packed ? bm / group : bm;
    auto [m, head, batch] = packed ? blocks(cdiv(q.extent(1), positions), k.extent(1), q.extent(0))
                                   : blocks(cdiv(q.extent(2), positions), q.extent(1), q.extent(0));
    Tile queries = reshape(packed ? Tile(load(q, {batch, m, head, 0}, {1, positions, group, d}))
                                  : Tile(load(q, {batch, head, m, 0}, {1, 1, positions, d})),
                           {bm, d});
    Tile rows = packed ? Tile(m * positions + iota({bm, 1}, 0) / group) : Tile(m * bm + iota({bm, 1}, 0));
    Var top = full<f32>({bm, 1}, -1e30), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});
    Tile factor = scale * log2e;
    const bool all = kind == Seen::full || kind == Seen::cached;
    Tile length = all ? Tile(k.extent(2)) : Tile(minimum((m + 1) * positions, k.extent(2)));
    Tile first = kind == Seen::window ? Tile(maximum(m * positions - (window - 1), 0) / bn) : Tile(0 * m);
    Tile of_keys = packed ? Tile(head) : Tile(head / group);
    for (Index i : range(cdiv(length, bn) - first)) {
      Tile j = first + i;
      Tile columns = j * bn + iota({1, bn}, 1);
      Tile seen = all                    ? Tile(columns < k.extent(2))
                  : kind == Seen::causal ? Tile(columns <= rows)
                                         : Tile((columns <= rows) & (columns > rows - window));
      Tile keys = reshape(load(k, {batch, of_keys, j, 0}, {1, 1, bn, d}), {bn, d});
      Tile values = reshape(load(v, {batch, of_keys, j, 0}, {1, 1, bn, d}), {bn, d});
      Tile s = where(seen, mma(queries, transpose(keys), zeros<f32>({bm, bn})), -inf);
      Tile hi = maximum(top, max(s, 1));
      // The scale is above 0, so the largest scaled score is the scale times the largest score.
      Tile p = exp2(s * factor - hi * factor), shrink = exp2((top - hi) * factor);
      norm = norm * shrink + sum(p, 1);
      acc = mma(cast<bf16>(p), values, acc * shrink);
      top = hi;
    }
    Tile out = cast<bf16>(acc * (1 / norm));
    packed ? store(o, {batch, m, head, 0}, reshape(out, {1, positions, group, d}))
           : store(o, {batch, head, m, 0}, reshape(out, {1, 1, positions, d}));
  });
}

}  // namespace tessera::internal::bench
