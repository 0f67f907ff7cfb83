// Every kernel of a transformer, written in the language. Nothing here depends on a device, and nothing elsewhere in
// the model computes.
//
// Shapes: B sequences, T new positions each (padded to the longest), C wide, H heads of d, V tokens, P positions. Q = H
// d columns of queries; K columns of keys, and of values, which have G times fewer heads: Q = G K.
//   P   element type of the operands of matmuls: f32, tf32 or bf16; accumulators are f32
//   A   element type of activations in memory: P, or f32 for tf32, which is never stored in memory
//   W   element type of the weights in memory
// Sequences differ in length: `past` [B] counts positions in the cache, `count` [B] new ones, both on the device.
#pragma once
#include <bit>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "model/tiles.hpp"
#include "tessera/model/config.hpp"
#include "tessera/tessera.hpp"

namespace tessera::internal::kernels {

/// A, for matmul operands of type P.
template <Element P>
using Activations = std::conditional_t<std::same_as<P, tf32>, f32, P>;

/// The activation of the MLP. The exact GELU, by erf, keeps only x / 2, because registers are few: erfc, which is
/// accurate below -4, would spill in matmuls.
inline Tile<f32, 2> activated(Activation activation, TileExpr auto const& e) {
  Tile x = e;
  if (activation == Activation::gelu_tanh) return gelu_tanh(x);
  if (activation == Activation::silu) return silu(x);
  if (activation == Activation::relu) return maximum(x, 0.0f);
  if (activation == Activation::none) return x;
  Tile half = x * 0.5f;
  return fma(half, erf(half * 1.4142135623730951f), half);
}
/// The name of a kernel with an activation: "linear_gelu".
inline std::string name_with(std::string_view name, Activation activation) {
  const auto with = [&](const char* of) { return std::string(name) + of; };
  switch (activation) {
    case Activation::gelu_tanh:
      return with("_gelu");
    case Activation::gelu:
      return with("_exact_gelu");
    case Activation::silu:
      return with("_silu");
    case Activation::relu:
      return with("_relu");
    case Activation::none:
      break;
  }
  return std::string(name);
}

/// The names of a kernel that normalizes rows, and of one that leaves them as they are.
inline const char* name_of(Norm norm) {
  return norm == Norm::rms ? "rms_norm" : norm == Norm::layer ? "layer_norm" : "as_operands";
}

/// Normalizes rows as `norm` says; rms needs no bias, and none no weight. Rows of `width` may be in a tile of more
/// columns, which are 0.
Tile<f32, 2> normalize(TileExpr auto const& e, Norm norm, int width, const auto& weight, const auto& bias,
                       const Scalar<f32>& epsilon, int columns = 0) {
  Tile x = e;
  columns = std::max(columns, width);
  if (norm == Norm::none) return x;
  if (norm == Norm::rms)
    return x * rsqrt(sum(x * x, 1) * (1.0f / static_cast<float>(width)) + epsilon) * load(weight, {0}, {columns});
  Tile deviation = x - sum(x, 1) * (1.0f / static_cast<float>(width));
  Tile centered = columns == width ? deviation : Tile(where(iota({1, columns}, 1) < width, deviation, 0.0f));
  Tile rstd = rsqrt(sum(centered * centered, 1) * (1.0f / static_cast<float>(width)) + epsilon);
  return centered * rstd * load(weight, {0}, {columns}) + load(bias, {0}, {columns});
}

/// acc = x w over the whole inner axis, for the tile (m, n) of the result. Here and below, `deterministic` is that of
/// Hints: the order of sums does not depend on the number of rows.
template <Element P, Element A, Element W>
Tile<f32, 2> matmul(const In<A, 2>& x, const In<W, 2>& w, const Index& m, const Index& n, MatmulTiles tiles,
                    bool deterministic = false) {
  if (deterministic) hints({.deterministic = true});
  Var acc = zeros<f32>({tiles.m, tiles.n});
  for (Index k : range(cdiv(x.extent(1), tiles.k)))
    acc = mma(cast<P>(load(x, {m, k}, {tiles.m, tiles.k})), cast<P>(load(w, {k, n}, {tiles.k, tiles.n})), acc);
  return acc;
}

/// x [B,T,C] = scale embedding[ids], plus positions[past + position] if they are learned.
template <Element W>
auto embed(int width, int rows, PositionEncoding kind = PositionEncoding::learned) {
  return kernel("embed", [=](In<i32, 2> ids, In<i32, 1> past, In<W, 2> embedding, Optional<In<W, 2>> positions,
                             Out<f32, 3> x, Scalar<f32> scale) {
    auto [t, b] = blocks(cdiv(x.extent(1), rows), x.extent(0));
    Tile tokens = reshape(load(ids, {b, t}, {1, rows}, -1), {rows});
    Var rows_of_x = cast<f32>(gather(embedding, tokens, {0}, {width})) * scale;
    if (kind == PositionEncoding::learned) {
      Tile position = load(past, {b}, {1}) + t * rows + iota({rows}, 0);
      rows_of_x = rows_of_x + cast<f32>(gather(positions, position, {0}, {width}));
    }
    store(x, {b, t, 0}, reshape(rows_of_x, {1, rows, width}));
  });
}

/// y [rows,C] = norm of x.
template <Element A>
auto layer_norm(int width, NormTiles tiles, Norm norm = Norm::layer) {
  return kernel(name_of(norm), [=](In<f32, 2> x, In<f32, 1> weight, In<f32, 1> bias, Out<A, 2> y, Scalar<f32> epsilon) {
    require(x.extent(1) == width, "rows as wide as the kernel was made for");
    if (tiles.warps > 0) hints({.warps = tiles.warps});
    const int columns = std::max(tiles.columns, width);
    Index row = blocks(cdiv(x.extent(0), tiles.rows));
    Tile normed = normalize(load(x, {row, 0}, {tiles.rows, columns}), norm, width, weight, bias, epsilon, columns);
    store(y, {row, 0}, cast<A>(normed));
  });
}

/// y [B,C] = norm of each sequence's last new position in x [B,T,C].
template <Element A>
auto last_norm(int width, NormTiles tiles, Norm norm = Norm::layer) {
  return kernel("last_norm", [=](In<f32, 3> x, In<i32, 1> count, In<f32, 1> weight, In<f32, 1> bias, Out<A, 2> y,
                                 Scalar<f32> epsilon) {
    require(x.extent(2) == width, "rows as wide as the kernel was made for");
    if (tiles.warps > 0) hints({.warps = tiles.warps});
    const int columns = std::max(tiles.columns, width);
    Index b = blocks(x.extent(0));
    Tile last = item(load(count, {b}, {1})) - 1;
    Tile row = reshape(load(x.slice(1, last, 1), {b, 0, 0}, {1, 1, columns}), {1, columns});
    store(y, {b, 0}, cast<A>(normalize(row, norm, width, weight, bias, epsilon, columns)));
  });
}

/// x [rows,C] += rms norm of y [rows,C].
template <Element A>
auto add_norm(int width, NormTiles tiles) {
  return kernel("add_norm", [=](In<A, 2> y, In<f32, 1> weight, InOut<f32, 2> x, Scalar<f32> epsilon) {
    require(x.extent(1) == width, "rows as wide as the kernel was made for");
    if (tiles.warps > 0) hints({.warps = tiles.warps});
    const int columns = std::max(tiles.columns, width);
    Index row = blocks(cdiv(x.extent(0), tiles.rows));
    Tile update = cast<f32>(load(y, {row, 0}, {tiles.rows, columns}));
    Tile normed = normalize(update, Norm::rms, width, weight, weight, epsilon, columns);
    Tile before = load(x, {row, 0}, {tiles.rows, columns});
    store(x, {row, 0}, before + normed);
  });
}

/// y [rows,N] = x [rows,K] w [K,N] + bias.
template <Element P, Element W>
auto linear(MatmulTiles tiles, bool deterministic = false) {
  using A = Activations<P>;
  return kernel("linear", [=](In<A, 2> x, In<W, 2> w, In<f32, 1> bias, Out<A, 2> y) {
    require(x.extent(1) == w.extent(0), "inner extents agree");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    store(y, {m, n}, cast<A>(matmul<P>(x, w, m, n, tiles, deterministic) + load(bias, {n}, {tiles.n})));
  });
}

/// In which of queries, keys and values a tile of columns is, and its number there.
struct QkvTile {
  Index which, column;
};
/// For one of `parts` tiles of a head group's columns, K; the first `group` groups are queries.
inline QkvTile tile_of_qkv(const Index& n, const Index& parts, int group) {
  Index of_group = n / parts, j = n % parts;
  if (group == 1) return {of_group, j};
  return {maximum(of_group - (group - 1), 0), where(of_group < group, n, j)};
}

/// Queries, keys and values in one matmul: x [B,T,C] w [C,G+2,K] + bias [G+2,K]. `to` are the queries [B,T,Q], and the
/// cache of keys and values [B,P,K], of which the new positions are written. A tile has positions of one sequence, and
/// columns of one of the three.
template <Element P, Element W>
auto linear_qkv(MatmulTiles tiles, int group = 1, bool deterministic = false) {
  using A = Activations<P>;
  return kernel("linear_qkv",
                [=](In<A, 3> x, In<W, 3> w, In<f32, 2> bias, In<i32, 1> past, In<i32, 1> count, List<Out<A, 3>, 3> to) {
    require(x.extent(2) == w.extent(0), "inner extents agree");
    if (group > 1) require(w.extent(2) % tiles.n == 0, "tiles divide the columns of keys");
    if (deterministic) hints({.deterministic = true});
    Index across = cdiv(w.extent(2), tiles.n);
    auto [t, n, b] = blocks(cdiv(x.extent(1), tiles.m), (group + 2) * across, x.extent(0));
    auto [which, column] = tile_of_qkv(n, across, group);
    Index part = n / across, j = n % across;
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(2), tiles.k)))
      acc = mma(cast<P>(reshape(load(x, {b, t, k}, {1, tiles.m, tiles.k}), {tiles.m, tiles.k})),
                cast<P>(reshape(load(w, {k, part, j}, {tiles.k, 1, tiles.n}), {tiles.k, tiles.n})), acc);
    Tile y = cast<A>(acc + load(bias, {part, j}, {1, tiles.n}));
    Tile start = where(which == 0, 0, item(load(past, {b}, {1})));
    Tile extent = where(which == 0, x.extent(1), item(load(count, {b}, {1})));
    store(to[which].slice(1, start, extent), {b, t, column}, reshape(y, {1, tiles.m, tiles.n}));
  });
}

/// y [rows,N] = activation(x [rows,K] w [K,N] + bias).
template <Element P, Element W>
auto linear_activated(Activation activation, MatmulTiles tiles, bool deterministic = false) {
  using A = Activations<P>;
  return kernel(name_with("linear", activation), [=](In<A, 2> x, In<W, 2> w, In<f32, 1> bias, Out<A, 2> y) {
    require(x.extent(1) == w.extent(0), "inner extents agree");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Tile up = matmul<P>(x, w, m, n, tiles, deterministic) + load(bias, {n}, {tiles.n});
    store(y, {m, n}, cast<A>(activated(activation, up)));
  });
}
template <Element P, Element W>
auto linear_gelu(MatmulTiles tiles, bool deterministic = false) {
  return linear_activated<P, W>(Activation::gelu_tanh, tiles, deterministic);
}

/// y [rows,I] = activation(gate) up, of gate and up side by side in both [rows,2I].
template <Element A>
auto multiply_by_gate(Activation activation, int inner, int rows, int columns) {
  return kernel("multiply_by_gate", [=](In<A, 2> both, Out<A, 2> y) {
    require(both.extent(1) == 2 * inner, "gate and up side by side");
    auto [m, n] = blocks(cdiv(y.extent(0), rows), cdiv(y.extent(1), columns));
    Tile gate = cast<f32>(load(both.slice(1, 0, inner), {m, n}, {rows, columns}));
    Tile up = cast<f32>(load(both.slice(1, inner, inner), {m, n}, {rows, columns}));
    store(y, {m, n}, cast<A>(activated(activation, gate) * up));
  });
}

/// y [rows,N] += x [rows,K] w [K,N] + bias: y is the residual stream.
template <Element P, Element W>
auto linear_residual(MatmulTiles tiles, bool deterministic = false) {
  using A = Activations<P>;
  return kernel("linear_residual", [=](In<A, 2> x, In<W, 2> w, In<f32, 1> bias, InOut<f32, 2> y) {
    require(x.extent(1) == w.extent(0), "inner extents agree");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Tile update = matmul<P>(x, w, m, n, tiles, deterministic) + load(bias, {n}, {tiles.n});
    Tile residual = load(y, {m, n}, {tiles.m, tiles.n});
    store(y, {m, n}, residual + update);
  });
}

/// cap tanh(x / cap), or x if there is no cap.
auto capped(TileExpr auto const& e, float cap) {
  Tile x = e;
  return cap == 0 ? x : decltype(x)(tanh(x * (1 / cap)) * cap);
}

constexpr float f32_log2e = static_cast<float>(log2e);

/// logits [rows,N] = x [rows,C] head^T, capped, of type L. The head, tied to the embedding or not, is [V,C]; columns
/// behind V become 0.
template <Element P, Element W, Element L = f32>
auto lm_head(MatmulTiles tiles, bool deterministic = false, float cap = 0) {
  using A = Activations<P>;
  return kernel("lm_head", [=](In<A, 2> x, In<W, 2> head, Out<L, 2> logits) {
    require(x.extent(1) == head.extent(1), "inner extents agree");
    if (deterministic) hints({.deterministic = true});
    auto [m, n] = blocks(cdiv(logits.extent(0), tiles.m), cdiv(logits.extent(1), tiles.n));
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(cast<P>(load(x, {m, k}, {tiles.m, tiles.k})),
                transpose(cast<P>(load(head, {n, k}, {tiles.n, tiles.k}))), acc);
    store(logits, {m, n}, cast<L>(capped(acc, cap)));
  });
}

/// Appends the keys and values of the new positions to the cache: qkv [B,T,Q+2K] into keys, values [B,P,K].
template <Element A>
auto append_cache(int width, int rows, int group = 1) {
  return kernel("append_cache", [=](In<A, 3> qkv, In<i32, 1> past, In<i32, 1> count, Out<A, 3> keys, Out<A, 3> values) {
    require(qkv.extent(2) == (group + 2) * width, "queries, keys and values side by side");
    auto [t, b] = blocks(cdiv(qkv.extent(1), rows), qkv.extent(0));
    Tile start = item(load(past, {b}, {1})), extent = item(load(count, {b}, {1}));
    store(keys.slice(1, start, extent), {b, t, 0}, load(qkv, {b, t, group}, {1, rows, width}));
    store(values.slice(1, start, extent), {b, t, 0}, load(qkv, {b, t, group + 1}, {1, rows, width}));
  });
}

/// Two halves of heads, whose elements i are rotated by one angle (RoPE).
struct HeadHalves {
  Tile<f32, 2> left, right;
};
inline HeadHalves rotate(const HeadHalves& x, const Tile<f32, 2>& cosine, const Tile<f32, 2>& sine) {
  return {x.left * cosine - x.right * sine, x.right * cosine + x.left * sine};
}

/// Rotates the queries and keys of new positions, and appends keys and values to the cache: qkv [B,T,Q+2K] into `to`,
/// queries [B,T,Q], and keys and values [B,P,K]. rotation [positions,d] has the cosines of the angles of each position,
/// then the sines. Before, queries and keys are normalized with weights query_norm and key_norm, [d] or [Q] and [K], by
/// the root mean square of their head or of all heads.
template <Element A>
auto rotate_append(int heads, int key_heads, int d, int rows, QkNorm norm = QkNorm::none) {
  return kernel("rotate_append",
                [=](In<A, 3> qkv, In<f32, 2> rotation, Optional<In<f32, 1>> query_norm, Optional<In<f32, 1>> key_norm,
                    In<i32, 1> past, In<i32, 1> count, List<Out<A, 3>, 3> to, Scalar<f32> epsilon) {
    require(qkv.extent(2) == (heads + 2 * key_heads) * d, "queries, keys and values side by side");
    const int half = d / 2;
    auto [t, h, b] = blocks(cdiv(qkv.extent(1), rows), heads + 2 * key_heads, qkv.extent(0));
    Index which = where(h < heads, 0, where(h < heads + key_heads, 1, 2));
    Index head = h - where(which == 0, 0, heads + (which - 1) * key_heads);
    Tile before = item(load(past, {b}, {1}));
    Tile position = before + t * rows + iota({rows}, 0);
    const auto half_of = [&](int i) {
      return cast<f32>(reshape(load(qkv, {b, t, 2 * h + i}, {1, rows, half}), {rows, half}));
    };
    const auto inverse_rms = [&](const HeadHalves& x) -> Tile<f32, 2> {
      if (norm == QkNorm::head)
        return rsqrt(sum(x.left * x.left + x.right * x.right, 1) * (1.0f / static_cast<float>(d)) + epsilon);
      // The norm is one of all queries, or of all keys. The rest of the tile is 0.
      const auto kind = qkv.slice(2, where(which == 0, 0, heads * d), where(which == 0, heads * d, key_heads * d));
      Tile all = cast<f32>(reshape(load(kind, {b, t, 0}, {1, rows, heads * d}), {rows, heads * d}));
      return rsqrt(sum(all * all, 1) / cast<f32>(where(which == 0, heads * d, key_heads * d)) + epsilon);
    };
    const auto normed = [&](const HeadHalves& x) -> HeadHalves {
      if (norm == QkNorm::none) return x;
      Tile factor = inverse_rms(x);
      const auto weighted = [&](const Tile<f32, 2>& part, int i) -> Tile<f32, 2> {
        Index at = norm == QkNorm::head ? Index(constant<i32>(i)) : Index(2 * head + i);
        Tile weight = where(which == 0, load(query_norm, {at}, {half}), load(key_norm, {at}, {half}));
        return where(which < 2, part * factor * weight, part);
      };
      return {weighted(x.left, 0), weighted(x.right, 1)};
    };
    auto [left, right] =
        rotate(normed({half_of(0), half_of(1)}), where(which < 2, gather(rotation, position, {0}, {half}), 1.0f),
               where(which < 2, gather(rotation, position, {1}, {half}), 0.0f));
    const auto rows_of =
        to[which].slice(1, where(which == 0, 0, before), where(which == 0, qkv.extent(1), item(load(count, {b}, {1}))));
    store(rows_of, {b, t, 2 * head}, reshape(cast<A>(left), {1, rows, half}));
    store(rows_of, {b, t, 2 * head + 1}, reshape(cast<A>(right), {1, rows, half}));
  });
}

/// Attention beyond the factor of its scores: a query sees `window` keys, its own included, or all of them if that is
/// 0; scores have a cap, unless that is 0.
struct ScoreRules {
  int window = 0;
  float cap = 0;
};
/// Does a query at a position see the key at another one?
inline Tile<pred, 2> sees(const ScoreRules& rules, const Tile<i32, 2>& query, const Tile<i32, 2>& key) {
  if (rules.window == 0) return key <= query;
  return (key <= query) & (key > query - rules.window);
}
/// The same for the last of `length` positions.
template <int R>
Tile<pred, R> is_seen(const ScoreRules& rules, const Tile<i32, R>& key, const Index& length) {
  if (rules.window == 0) return key < length;
  return (key < length) & (key >= length - rules.window);
}
/// The first tile of `keys` positions of which the queries from position `first` on see one.
inline Index first_tile(const ScoreRules& rules, const Index& first, int keys) {
  return maximum(first - (rules.window - 1), 0) / keys;
}

/// Causal attention of the new positions over the cache, which by now includes them, with the online softmax (Dao et
/// al., 2022): it needs memory for one tile of scores only, whatever the length. q [B,T,Q], or wider, keys and values
/// [B,P,K] -> y [B,T,Q]. `group` heads of queries share one of keys. A multiprocessor runs `at_a_time` CTAs, if
/// registers and shared memory suffice; 0: the compiler chooses.
template <Element P>
auto attention(int heads, int head_width, int bm, int bn, int group = 1, int at_a_time = 0, ScoreRules rules = {}) {
  using A = Activations<P>;
  const int d = head_width;
  return kernel("attention", [=](In<A, 3> queries, In<A, 3> keys, In<A, 3> values, In<i32, 1> past, In<i32, 1> count,
                                 Out<A, 3> y, Scalar<f32> scale) {
    require(queries.extent(2) >= heads * d, "heads side by side");
    if (at_a_time > 0) hints({.occupancy = at_a_time});
    auto [m, h, b] = blocks(cdiv(queries.extent(1), bm), heads, queries.extent(0));
    Index of_keys = group == 1 ? h : h / group;
    Tile start = item(load(past, {b}, {1}));
    Tile length = start + item(load(count, {b}, {1}));
    // The cache beyond `length` was never written: it is read as 0, and 0 * v stays 0.
    const auto filled_keys = keys.slice(1, 0, length);
    const auto filled_values = values.slice(1, 0, length);
    Tile q = cast<P>(reshape(load(queries, {b, m, h}, {1, bm, d}), {bm, d}));
    Tile rows = start + m * bm + iota({bm, 1}, 0);
    Tile reach = maximum(minimum(length, start + (m + 1) * bm), 1);
    Tile factor = scale * log2e;
    const auto scores = [&](const Tile<f32, 2>& raw) {
      return rules.cap == 0 ? raw : Tile(capped(raw * scale, rules.cap) / scale);
    };
    Var top = full<f32>({bm, 1}, -1e30), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});
    for (Index j :
         rules.window == 0 ? range(cdiv(reach, bn)) : range(first_tile(rules, start + m * bm, bn), cdiv(reach, bn))) {
      Tile cols = j * bn + iota({1, bn}, 1);
      Tile k = cast<P>(reshape(load(filled_keys, {b, j, of_keys}, {1, bn, d}), {bn, d}));
      Tile v = cast<P>(reshape(load(filled_values, {b, j, of_keys}, {1, bn, d}), {bn, d}));
      Tile s = where(sees(rules, rows, cols), scores(mma(q, transpose(k), zeros<f32>({bm, bn}))), -inf);
      Tile hi = maximum(top, max(s, 1));
      // The factor is positive: so the maximum of the scaled scores is the scaled maximum.
      Tile p = exp2(s * factor - hi * factor), a = exp2((top - hi) * factor);
      norm = norm * a + sum(p, 1);
      acc = mma(cast<P>(p), v, acc * a);
      top = hi;
    }
    store(y, {b, m, h}, reshape(cast<A>(acc / maximum(norm, 1e-30)), {1, bm, d}));
  });
}

/// Attention of one new position per sequence: only the length masks, and the window. q [B,1,Q], or wider -> y [B,1,Q].
/// For the CPU; a GPU has decode_attend.
template <Element P>
auto decode_attention(int heads, int head_width, int bn, int group = 1, ScoreRules rules = {}) {
  using A = Activations<P>;
  const int d = head_width;
  return kernel("decode_attention", [=](In<A, 3> qkv, In<A, 3> keys, In<A, 3> values, In<i32, 1> past, In<i32, 1> count,
                                        Out<A, 3> y, Scalar<f32> scale) {
    require(qkv.extent(2) >= heads * d, "heads side by side");
    require(qkv.extent(1) == 1, "one new position per sequence");
    auto [h, b] = blocks(heads, qkv.extent(0));
    Index of_keys = group == 1 ? h : h / group;
    Tile length = item(load(past, {b}, {1})) + item(load(count, {b}, {1}));
    const auto filled_keys = keys.slice(1, 0, length);
    const auto filled_values = values.slice(1, 0, length);
    Tile q = cast<P>(reshape(load(qkv, {b, 0, h}, {1, 1, d}), {1, d}));
    Var top = full<f32>({1, 1}, -1e30), norm = zeros<f32>({1, 1}), acc = zeros<f32>({1, d});
    for (Index j :
         rules.window == 0 ? range(cdiv(length, bn)) : range(first_tile(rules, length - 1, bn), cdiv(length, bn))) {
      Tile k = cast<P>(reshape(load(filled_keys, {b, j, of_keys}, {1, bn, d}), {bn, d}));
      Tile v = cast<P>(reshape(load(filled_values, {b, j, of_keys}, {1, bn, d}), {bn, d}));
      Tile s = where(is_seen<2>(rules, j * bn + iota({1, bn}, 1), length),
                     capped(mma(q, transpose(k), zeros<f32>({1, bn})) * (scale * log2e), rules.cap * f32_log2e), -inf);
      Tile hi = maximum(top, max(s, 1)), p = exp2(s - hi), a = exp2(top - hi);
      norm = norm * a + sum(p, 1);
      acc = mma(cast<P>(p), v, acc * a);
      top = hi;
    }
    store(y, {b, 0, h}, reshape(cast<A>(acc / maximum(norm, 1e-30)), {1, 1, d}));
  });
}

/// Marks tokens of the text: seen [B,V] becomes 1 where the first count [B] of ids [B,T] name a token. One CTA per
/// sequence, because no two may write the same mark.
inline auto mark_seen(int rows) {
  return kernel("mark_seen", [=](In<i32, 2> ids, In<i32, 1> count, Out<u8, 2> seen) {
    Index b = blocks(ids.extent(0));
    Tile length = item(load(count, {b}, {1}));
    for (Index t : range(cdiv(length, rows))) {
      Tile here = t * rows + iota({1, rows}, 1) < length;
      Tile tokens = reshape(where(here, load(ids, {b, t}, {1, rows}), -1), {rows});
      scatter(seen.permute({1, 0}), tokens, {b}, full<u8>({rows, 1}, 1));
    }
  });
}

/// Lowers the scores of tokens seen before: divides positive ones by the penalty, and multiplies the others by it
/// (Keskar et al., 2019).
inline auto penalized(TileExpr auto const& logits, TileExpr auto const& seen, const Scalar<f32>& penalty) {
  Tile x = logits;
  return where(cast<pred>(seen), where(x > 0, x / penalty, x * penalty), x);
}

/// The token, or -1 if a logit is not finite.
inline auto checked(TileExpr auto const& token, TileExpr auto const& logits) {
  Tile x = logits;
  Tile finite = max(where((x < inf) & (x > -inf), 0, 1), 1) == 0;
  return where(reshape(finite, {1}), reshape(token, {1}), -1);
}

/// In each column, the best token of some rows [1,columns] of logits and its score. A logit that is not finite is best,
/// as token -1.
struct BestTokens {
  Var<f32, 2> scores;
  Var<i32, 2> tokens;

  BestTokens(const Index& first, int columns)
      : scores(full<f32>({1, columns}, -inf)), tokens(first + iota({1, columns}, 1)) {}
  void add(const Tile<f32, 2>& logits, const Tile<f32, 2>& score, const Tile<i32, 2>& token, int vocab) {
    Tile finite = (logits < inf) & (logits > -inf);
    Tile known = where(finite, score, inf);
    Tile better = (token < vocab) & (known > scores);
    tokens = where(better, where(finite, token, -1), tokens);
    scores = where(better, known, scores);
  }
  /// Stores the lowest of the best tokens, and its score.
  void store_best(const Out<i32, 2>& token, const Out<f32, 2>& score, const Index& b, const Index& part) {
    Tile top = max(scores, axis(1));
    store(token, {b, part}, min(where(scores == top, tokens, std::numeric_limits<std::int32_t>::max()), axis(1)));
    store(score, {b, part}, top);
  }
};

/// Like lm_head, and the best token of each tile of columns, of the first `vocab`, and its score: tokens, scores
/// [B,parts], as greedy_parts has them.
template <Element P, Element W>
auto greedy_head(MatmulTiles tiles, int vocab, bool deterministic = false, float cap = 0) {
  using A = Activations<P>;
  return kernel("greedy_head",
                [=](In<A, 2> x, In<W, 2> head, Out<f32, 2> logits, Out<i32, 2> tokens, Out<f32, 2> scores) {
    require(x.extent(1) == head.extent(1), "inner extents agree");
    if (deterministic) hints({.deterministic = true});
    auto [m, n] = blocks(cdiv(logits.extent(0), tiles.m), cdiv(logits.extent(1), tiles.n));
    Var y = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      y = mma(cast<P>(load(x, {m, k}, {tiles.m, tiles.k})), transpose(cast<P>(load(head, {n, k}, {tiles.n, tiles.k}))),
              y);
    if (cap > 0) y = capped(y, cap);
    store(logits, {m, n}, y);
    Tile token = n * tiles.n + iota({1, tiles.n}, 1);
    Tile finite = (y < inf) & (y > -inf);
    Tile score = where(token < vocab, where(finite, y, inf), -inf), top = max(score, axis(1));
    store(tokens, {m, n},
          min(where(score == top, where(finite, token, -1), std::numeric_limits<std::int32_t>::max()), axis(1)));
    store(scores, {m, n}, top);
  });
}

/// For each part of logits [B,N], which is `tiles` tiles of `columns` of a row, the most probable token and its score:
/// tokens, scores [B,parts]. Only the first `vocab` columns are tokens. Among equal scores it is the lowest token, and
/// -1 if a logit of the part is not finite. Tokens in seen [B,N] are penalized; without it, none are.
inline auto greedy_parts(int vocab, int columns, int tiles) {
  return kernel("greedy_parts", [=](In<f32, 2> logits, Optional<In<u8, 2>> seen, Out<i32, 2> tokens, Out<f32, 2> scores,
                                    Scalar<f32> penalty) {
    auto [part, b] = blocks(cdiv(vocab, columns * tiles), logits.extent(0));
    std::vector<Tile<f32, 2>> raw, score;
    for (int j = 0; j < tiles; ++j) raw.push_back(load(logits, {b, part * tiles + j}, {1, columns}));
    for (int j = 0; j < tiles; ++j)
      score.push_back(
          penalized(raw[static_cast<std::size_t>(j)], load(seen, {b, part * tiles + j}, {1, columns}), penalty));
    BestTokens best(part * (tiles * columns), columns);
    for (int j = 0; j < tiles; ++j) {
      Tile token = (part * tiles + j) * columns + iota({1, columns}, 1);
      best.add(raw[static_cast<std::size_t>(j)], score[static_cast<std::size_t>(j)], token, vocab);
    }
    best.store_best(tokens, scores, b, part);
  });
}

/// token [B] = the best token of all parts, -1 if that of any part is -1; chosen [B] is the same, in memory of the
/// host. With past and count [B], past += count: the text becomes longer.
inline auto greedy_token(int parts) {
  return kernel("greedy_token", [=](In<i32, 2> tokens, In<f32, 2> scores, Out<i32, 1> token, Out<i32, 1> chosen,
                                    Optional<In<i32, 1>> count, Optional<InOut<i32, 1>> past) {
    Index b = blocks(tokens.extent(0));
    Tile all = load(tokens, {b, 0}, {1, parts});
    Tile best = argmax(load(scores, {b, 0}, {1, parts}), 1);
    Tile picked = sum(where(iota({1, parts}, 1) == best, all, 0), 1);
    Tile result = reshape(where(min(all, 1) < 0, -1, picked), {1});
    store(token, {b}, result);
    store(chosen, {b}, result);
    Tile before = load(past, {b}, {1});
    store(past, {b}, before + load(count, {b}, {1}));
  });
}

/// The last integer of [low, high) for which `holds` is true: it is for `low`, and no longer from some integer on.
/// Bisects the interval `rounds` times.
Tile<i32, 2> last_integer(const Tile<i32, 2>& low, const Tile<i32, 2>& high, const Index& rounds, auto const& holds) {
  Var from = low, to = high;
  for ([[maybe_unused]] Index i : range(rounds)) {
    Tile middle = (from & to) + ((from ^ to) >> 1);  // the mean, without overflow
    Tile found = holds(middle);
    from = where(found, middle, from);
    to = where(found, to, middle);
  }
  return from;
}

/// The f32 of a rank: ranks are integers in the order of the numbers; the rank of 0 is 0.
inline auto number_of_rank(TileExpr auto const& rank) {
  Tile bits = rank;
  return bitcast<f32>(bits ^ ((bits >> 31) & 0x7fffffff));
}

/// An exponentially distributed number of rate 1 from 64 random bits. Near 0 it has steps of 2^-64, and it is at most
/// 16.6, which lowers its mean by 2^-24.
inline auto exponential(TileExpr auto const& high, TileExpr auto const& low) {
  Tile uniform = cast<f32>(bitcast<u32>(high)) * 0x1p-32f + (cast<f32>(bitcast<u32>(low)) + 0.5f) * 0x1p-64f;
  return -log1p(-minimum(uniform, 1 - 0x1p-24f));
}

/// token [B] drawn from logits [B,N] with V tokens: repetition penalty, temperature, top-k, top-p (nucleus), min-p, in
/// the order of transformers. k < 1, p >= 1 and min-p 0 turn their filter off. Top-k keeps k tokens, and top-p the
/// fewest that have its mass; among equals, the lowest. The draw is an exponential race: the largest p / e, with e
/// exponential, is token i with probability p_i. e has the 24 bits of f32 however small it is, so a tie is as rare as
/// the rounding of p allows. The random key is that of the sequence in keys [B], the index is made of position and
/// token: so a draw does not depend on other sequences of the batch. chosen [B] is the token again, in memory of the
/// host.
inline auto sample(int vocab) {
  return kernel("sample", [=](In<f32, 2> logits, Optional<In<u8, 2>> seen, In<i32, 1> past, In<i64, 1> keys,
                              Out<i32, 1> token, Out<i32, 1> chosen, Scalar<f32> penalty, Scalar<f32> temperature,
                              Scalar<i32> top_k, Scalar<f32> top_p, Scalar<f32> min_p) {
    constexpr int rank_of_infinity = 0x7f800000;
    const int bits_of_id = std::bit_width(static_cast<unsigned>(vocab));
    Index b = blocks(logits.extent(0));
    Tile raw = load(logits, {b, 0}, {1, vocab});
    Tile score = penalized(raw, load(seen, {b, 0}, {1, vocab}), penalty);
    Tile id = iota({1, vocab}, 1);
    Tile ids = full<i32>({1, 1}, vocab);

    // The largest bound that at least k scores reach, by bisection over all f32; then, if too many scores are equal to
    // the bound, the last id to keep of these. The temperature comes later: it may make different scores equal.
    Tile all = (top_k < 1) | (top_k >= vocab);
    Tile k = where(all, vocab, top_k);
    Tile lowest = full<i32>({1, 1}, -rank_of_infinity - 1);
    Tile bound = number_of_rank(
        last_integer(lowest, full<i32>({1, 1}, rank_of_infinity + 1), where(all, 0, 32),
                     [&](const auto& rank) { return sum(where(score >= number_of_rank(rank), 1, 0), 1) >= k; }));
    Tile crowded = sum(where(score >= bound, 1, 0), 1) > k;
    Tile last = last_integer(where(crowded, 0, ids), ids, item(where(crowded, bits_of_id, 0)), [&](const auto& end) {
      return sum(where((score > bound) | ((score == bound) & (id < end)), 1, 0), 1) < k;
    });
    Tile among_k = (score > bound) | ((score == bound) & (id <= last));
    // At most 0, however small the temperature is.
    Tile weight = where(among_k, exp((score - max(score, 1)) / temperature), 0.0f);
    Tile p = weight / sum(weight, 1);

    // The same for top-p: the fewest most probable tokens of that mass. Ranks of non-negative numbers are their bits.
    Tile largest = max(p, 1);
    Tile least = number_of_rank(
        last_integer(zeros<i32>({1, 1}), bitcast<i32>(largest) + 1, where(top_p >= 1.0f, 0, 30),
                     [&](const auto& rank) { return sum(where(p >= number_of_rank(rank), p, 0.0f), 1) >= top_p; }));
    Tile tied = (least > 0.0f) & (sum(where(p == least, 1, 0), 1) > 1);
    Tile last_tied = last_integer(where(tied, 0, ids), ids, item(where(tied, bits_of_id, 0)), [&](const auto& end) {
      return sum(where((p > least) | ((p == least) & (id < end)), p, 0.0f), 1) < top_p;
    });
    // min-p applies to what top-p leaves; that includes the best token, and division by its mass changes no ratio.
    Tile kept = ((p > least) | ((p == least) & (id <= last_tied))) & (p >= min_p * largest) & (p > 0.0f);

    Tile key = item(load(keys, {b}, {1}));
    Tile word = (cast<i64>(item(load(past, {b}, {1}))) * vocab + cast<i64>(id)) * 2;
    Tile race = where(kept, p / exponential(random_bits(key, word), random_bits(key, word + 1)), -1.0f);
    Tile drawn = checked(argmax(race, 1), raw);
    store(token, {b}, drawn);
    store(chosen, {b}, drawn);
  });
}

/// log_probability [rows] = log softmax(logits [rows,V]) at targets [rows]. A row is read once, however long: each
/// column of a tile has its own online maximum and sum, which are combined at the end.
template <Element L = f32>
auto log_probability(int vocab) {
  constexpr int columns = 512, tiles = 8;  // tiles per iteration
  return kernel("log_probability", [=](In<L, 2> logits, In<i32, 1> targets, Out<f32, 1> result) {
    Index row = blocks(logits.extent(0));
    Var top = full<f32>({1, columns}, -1e30), norm = zeros<f32>({1, columns});
    for (Index i : range(cdiv(vocab, tiles * columns))) {
      std::vector<Tile<f32, 2>> xs;
      for (int j = 0; j < tiles; ++j) xs.push_back(cast<f32>(load(logits, {row, i * tiles + j}, {1, columns}, -inf)));
      Var hi = top;
      for (const auto& x : xs) hi = maximum(hi, x);
      norm = norm * exp2((top - hi) * log2e);
      for (const auto& x : xs) norm = norm + exp2((x - hi) * log2e);
      top = hi;
    }
    Tile hi = max(top, 1);
    Tile total = log(sum(norm * exp2((top - hi) * log2e), 1));
    Tile target = item(load(targets, {row}, {1}));
    Tile at = cast<f32>(load(logits.slice(1, target, 1), {row, 0}, {1, 1}));
    store(result, {row}, reshape(at - hi - total, {1}));
  });
}

/// Random weights: uniform, with mean 0 and the given standard deviation, the same on any device.
template <Element W>
auto random_weights(int size) {
  return kernel("random_weights", [=](Out<W, 1> w, Scalar<f32> deviation, Scalar<i64> seed) {
    Index block = blocks(cdiv(w.extent(0), size));
    Tile index = cast<i64>(block) * size + cast<i64>(iota({size}, 0));
    store(w, {block}, cast<W>((random_uniform(seed, index) - 0.5f) * (deviation * 3.4641016151377544)));
  });
}

/// Converts weights to another element type.
template <Element To, Element From>
auto convert(int size) {
  return kernel("convert", [=](In<From, 1> in, Out<To, 1> out) {
    Index block = blocks(cdiv(out.extent(0), size));
    store(out, {block}, cast<To>(load(in, {block}, {size})));
  });
}

/// Adds one value to every element.
inline auto add(int size) {
  return kernel("add", [=](InOut<f32, 1> x, Scalar<f32> value) {
    Index block = blocks(cdiv(x.extent(0), size));
    Tile before = load(x, {block}, {size});
    store(x, {block}, before + value);
  });
}

/// Sets every element to one value.
template <Element T>
auto fill(int size) {
  return kernel("fill", [=](Out<T, 1> out, Scalar<f32> value) {
    Index block = blocks(cdiv(out.extent(0), size));
    store(out, {block}, broadcast(cast<T>(value), {size}));
  });
}

}  // namespace tessera::internal::kernels
