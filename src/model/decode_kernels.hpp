// The kernels of a decode step on a GPU. Each does as much as it can between two exchanges among all CTAs: five
// launches a layer for few sequences. Rows are normalized, and parts of attention combined, by every CTA that needs
// them.
//
// Shapes and types as in kernels.hpp; T is 1. R rows in a tile; S parts of the keys, attended by one CTA each.
#pragma once
#include "model/kernels.hpp"
#include "model/tiles.hpp"

namespace tessera::internal::kernels {

/// Stores tile n of rows b of the queries, keys and values [B,3C] of one new position of each sequence. `to` are the
/// queries [B,1,C], and the cache of keys and values [B,P,C], where only sequences with a new position (count [B] is 1)
/// have theirs. A tile has columns of one of the three, `parts` tiles each.
template <Element A>
void store_qkv(const Tile<A, 2>& y, const List<Out<A, 3>, 3>& to, const In<i32, 1>& past, const In<i32, 1>& count,
               const Index& b, const Index& n, const Index& parts, int rows) {
  Index which = n / parts, column = n % parts;
  Tile sequence = b * rows + iota({rows}, 0);
  Tile position = sequence * to[which].extent(1) + load(past, {b}, {rows});
  Tile in_cache = where(load(count, {b}, {rows}) > 0, position, -1);
  scatter(to[which].flatten(0), where(which == 0, sequence, in_cache), {column}, y);
}

/// Queries, keys and values (see store_qkv) of the layer norm of x [B,C]: its product with w [C,3C], plus bias.
template <Element P, Element W>
auto decode_qkv(int width, int rows, int columns) {
  using A = Activation<P>;
  return kernel("decode_qkv", [=](In<f32, 2> x, In<f32, 1> scale, In<f32, 1> shift, In<W, 2> w, In<f32, 1> bias,
                                  In<i32, 1> past, In<i32, 1> count, List<Out<A, 3>, 3> to, Scalar<f32> epsilon) {
    require(w.extent(1) == 3 * width, "queries, keys and values side by side");
    if (rows > 1) hints({.launch_dependents = false});  // attention has nothing to load before it must wait
    const int parts = width / columns;                  // of queries, of keys and of values
    auto [b, n] = blocks(cdiv(x.extent(0), rows), 3 * parts);
    Tile row = cast<P>(normalize(load(x, {b, 0}, {rows, width}), width, scale, shift, epsilon));
    Tile y = mma(row, cast<P>(load(w, {0, n}, {width, columns})), zeros<f32>({rows, columns}));
    store_qkv<A>(cast<A>(y + load(bias, {n}, {columns})), to, past, count, b, n, constant<i32>(parts), rows);
  });
}

/// The same of rows that are normalized: in [B,C] w [C,3C] + bias.
template <Element P, Element W>
auto decode_append(int width, int rows, int columns) {
  using A = Activation<P>;
  return kernel("decode_append", [=](In<A, 2> in, In<W, 2> w, In<f32, 1> bias, In<i32, 1> past, In<i32, 1> count,
                                     List<Out<A, 3>, 3> to) {
    require(w.extent(1) == 3 * width, "queries, keys and values side by side");
    hints({.launch_dependents = false});  // as in decode_qkv
    const int parts = width / columns;
    auto [b, n] = blocks(cdiv(in.extent(0), rows), 3 * parts);
    Tile y = mma(cast<P>(load(in, {b, 0}, {rows, width})), cast<P>(load(w, {0, n}, {width, columns})),
                 zeros<f32>({rows, columns}));
    store_qkv<A>(cast<A>(y + load(bias, {n}, {columns})), to, past, count, b, n, constant<i32>(parts), rows);
  });
}

/// The same for many sequences, with the tiles of a matmul.
template <Element P, Element W>
auto linear_append(MatmulTiles tiles, bool deterministic = false) {
  using A = Activation<P>;
  return kernel("linear_append",
                [=](In<A, 2> x, In<W, 2> w, In<f32, 1> bias, In<i32, 1> past, In<i32, 1> count, List<Out<A, 3>, 3> to) {
    require(x.extent(1) == w.extent(0), "inner extents agree");
    Index parts = cdiv(x.extent(1), tiles.n);
    auto [m, n] = blocks(cdiv(x.extent(0), tiles.m), 3 * parts);
    store_qkv<A>(cast<A>(matmul<P>(x, w, m, n, tiles, deterministic) + load(bias, {n}, {tiles.n})), to, past, count, m,
                 n, parts, tiles.m);
  });
}

/// A query over a part of the keys: weighted values [1,1,d], the largest score in powers of 2, and the sum of the
/// weights, [1,1,1].
struct Attended {
  Tile<f32, 3> sums, top, norm;
};

/// The keys and values of head h of sequence b, in tiles of `keys` positions: `part`, part + parts, ... Key i of a tile
/// belongs to group i mod `groups`, and each group, a few lanes of a warp, has an online softmax of its own: so warps
/// exchange nothing until the end.
template <Element A>
Attended attend(const In<A, 2>& q, const In<A, 3>& keys, const In<A, 3>& values, const Index& length, const Index& b,
                const Index& h, const Index& part, int d, int parts, const KeyTiles& tiles, const Scalar<f32>& scale) {
  const int groups = tiles.groups, each = tiles.keys / groups;
  const auto tile = [&](const In<A, 3>& from, const Index& j) {
    return cast<f32>(reshape(load(from, {b, j, h}, {1, tiles.keys, d}), {each, groups, d}));
  };
  const auto is_filled = [&](const Index& j) {
    return j * tiles.keys + iota({each, groups, 1}, 0) * groups + iota({each, groups, 1}, 1) < length;
  };
  Tile row = reshape(cast<f32>(load(q, {b, h}, {1, d})) * (scale * log2e), {1, 1, d});
  Var hi = full<f32>({1, groups, 1}, -1e30), total = zeros<f32>({1, groups, 1}), acc = zeros<f32>({1, groups, d});
  const auto add = [&](const Index& j, const Tile<f32, 3>& k, const Tile<f32, 3>& v) {
    Tile s = where(is_filled(j), sum(k * row, 2), -inf);
    Tile highest = maximum(hi, max(s, axis(0))), p = exp2(s - highest), a = exp2(hi - highest);
    total = total * a + sum(p, 0);
    acc = acc * a + sum(p * v, 0);
    hi = highest;
  };
  // Behind `length`, the cache may hold anything: scores there are not used, and values are 0, since 0 * NaN is NaN.
  // The loads of the first tile do not wait for the length.
  const auto filled_keys = keys.slice(1, 0, length), filled_values = values.slice(1, 0, length);
  add(part, tile(keys, part), where(is_filled(part), tile(values, part), 0.0f));
  for (Index i : range(1, cdiv(length, parts * tiles.keys))) {
    Index j = i * parts + part;
    add(j, tile(filled_keys, j), tile(filled_values, j));
  }
  Tile top = max(hi, axis(1)), share = exp2(hi - top);
  return {sum(acc * share, 1), top, sum(total * share, 1)};
}

/// Attention of q [B,C] over a part of the keys and values [B,P,C] (Flash-Decoding, Dao et al., 2023): for each part
/// the weighted values y [B,S,H,d], the largest score top [B,S,H], in powers of 2, and the sum of the weights norm.
template <Element P>
auto decode_part(int heads, int head_width, int parts, KeyTiles tiles) {
  using A = Activation<P>;
  const int d = head_width;
  return kernel("decode_part", [=](In<A, 2> q, In<A, 3> keys, In<A, 3> values, In<i32, 1> past, In<i32, 1> count,
                                   Out<f32, 4> y, Out<f32, 3> top, Out<f32, 3> norm, Scalar<f32> scale) {
    require(q.extent(1) == heads * d, "heads side by side");
    auto [part, h, b] = blocks(parts, heads, q.extent(0));
    Tile length = item(load(past, {b}, {1})) + item(load(count, {b}, {1}));
    Attended all = attend(q, keys, values, length, b, h, part, d, parts, tiles, scale);
    store(y, {b, part, h, 0}, reshape(all.sums, {1, 1, 1, d}));
    store(top, {b, part, h}, all.top);
    store(norm, {b, part, h}, all.norm);
  });
}

/// The same over all keys: y [B,C]. Queries are the first columns of q, which may be wider.
template <Element P>
auto decode_attend(int heads, int head_width, KeyTiles tiles) {
  using A = Activation<P>;
  const int d = head_width;
  return kernel("decode_attend", [=](In<A, 2> q, In<A, 3> keys, In<A, 3> values, In<i32, 1> past, In<i32, 1> count,
                                     Out<A, 2> y, Scalar<f32> scale) {
    require(q.extent(1) >= heads * d, "heads side by side");
    if (tiles.warps > 0) hints({.warps = tiles.warps});
    auto [b, h] = blocks(q.extent(0), heads);  // heads of a sequence, whose keys are neighbors in memory, at a time
    Tile length = item(load(past, {b}, {1})) + item(load(count, {b}, {1}));
    Attended all = attend(q, keys, values, length, b, h, constant<i32>(0), d, 1, tiles, scale);
    store(y, {b, h}, reshape(cast<A>(all.sums / maximum(all.norm, 1e-30)), {1, d}));
  });
}

/// Tile b of the rows of x += rows [R,K] w [K,C] + bias, for tile n of `columns` columns.
template <Element P, Element W>
void add_product(const Tile<P, 2>& rows, const In<W, 2>& w, const In<f32, 1>& bias, const InOut<f32, 2>& x,
                 const Index& b, const Index& n, int count, int k, int columns) {
  Tile update = mma(rows, cast<P>(load(w, {0, n}, {k, columns})), zeros<f32>({count, columns}));
  Tile residual = load(x, {b, n}, {count, columns});
  store(x, {b, n}, residual + (update + load(bias, {n}, {columns})));
}

/// x [B,C] += attended w [C,C] + bias, where the parts of attention (see decode_part) are combined first.
template <Element P, Element W>
auto decode_project(int heads, int head_width, int parts, int columns) {
  const int d = head_width, width = heads * d;
  return kernel("decode_project",
                [=](In<f32, 4> y, In<f32, 3> top, In<f32, 3> norm, In<W, 2> w, In<f32, 1> bias, InOut<f32, 2> x) {
    auto [b, n] = blocks(x.extent(0), cdiv(w.extent(1), columns));
    std::vector<Tile<f32, 2>> tops;
    for (int part = 0; part < parts; ++part)
      tops.push_back(reshape(load(top, {b, part, 0}, {1, 1, heads}), {heads, 1}));
    Var hi = tops[0], total = zeros<f32>({heads, 1}), sums = zeros<f32>({heads, d});
    for (const auto& other : tops) hi = maximum(hi, other);
    for (int part = 0; part < parts; ++part) {
      Tile share = exp2(tops[static_cast<std::size_t>(part)] - hi);
      total = total + share * reshape(load(norm, {b, part, 0}, {1, 1, heads}), {heads, 1});
      sums = sums + share * reshape(load(y, {b, part, 0, 0}, {1, 1, heads, d}), {heads, d});
    }
    Tile row = cast<P>(reshape(sums * (1.0f / total), {1, width}));
    add_product<P>(row, w, bias, x, b, n, 1, width, columns);
  });
}

/// x [B,C] += in [B,K] w [K,C] + bias.
template <Element P, Element W>
auto decode_residual(int k, int rows, int columns) {
  using A = Activation<P>;
  return kernel("decode_residual", [=](In<A, 2> in, In<W, 2> w, In<f32, 1> bias, InOut<f32, 2> x) {
    auto [b, n] = blocks(cdiv(x.extent(0), rows), cdiv(w.extent(1), columns));
    add_product<P>(cast<P>(load(in, {b, 0}, {rows, k})), w, bias, x, b, n, rows, k, columns);
  });
}

/// y [B,N] = activation(in [B,K] w [K,N] + bias).
template <Element P, Element W>
auto decode_linear(const char* name, int k, int rows, int columns, auto activation) {
  using A = Activation<P>;
  return kernel(name, [=](In<A, 2> in, In<W, 2> w, In<f32, 1> bias, Out<A, 2> y) {
    auto [b, n] = blocks(cdiv(y.extent(0), rows), cdiv(w.extent(1), columns));
    Tile product =
        mma(cast<P>(load(in, {b, 0}, {rows, k})), cast<P>(load(w, {0, n}, {k, columns})), zeros<f32>({rows, columns}));
    store(y, {b, n}, cast<A>(activation(product + load(bias, {n}, {columns}))));
  });
}

/// y [B,N] = activation(layer norm of x [B,C] w [C,N] + bias).
template <Element P, Element W>
auto activated_up(const char* name, int width, int rows, int columns, auto activation) {
  using A = Activation<P>;
  return kernel(name, [=](In<f32, 2> x, In<f32, 1> scale, In<f32, 1> shift, In<W, 2> w, In<f32, 1> bias, Out<A, 2> y,
                          Scalar<f32> epsilon) {
    auto [b, n] = blocks(cdiv(x.extent(0), rows), cdiv(w.extent(1), columns));
    Tile row = cast<P>(normalize(load(x, {b, 0}, {rows, width}), width, scale, shift, epsilon));
    Tile up = mma(row, cast<P>(load(w, {0, n}, {width, columns})), zeros<f32>({rows, columns}));
    store(y, {b, n}, cast<A>(activation(up + load(bias, {n}, {columns}))));
  });
}

/// GPT-2's own GELU, and the exact one; of x, only x / 2 is kept, as in linear_exact_gelu.
inline constexpr auto tanh_gelu = [](TileExpr auto const& e) { return gelu(e); };
inline constexpr auto exact_gelu = [](TileExpr auto const& e) {
  Tile half = e * 0.5f;
  return fma(half, erf(half * 1.4142135623730951f), half);
};

template <Element P, Element W>
auto decode_up(int width, int rows, int columns) {
  return activated_up<P, W>("decode_up", width, rows, columns, tanh_gelu);
}
template <Element P, Element W>
auto decode_exact_up(int width, int rows, int columns) {
  return activated_up<P, W>("decode_exact_up", width, rows, columns, exact_gelu);
}

/// logits [B,N] = layer norm of x [B,C], times the transposed head [V,C]; 0 behind V. Each CTA has `rounds` tiles of
/// columns, and gives the best of its tokens and their score, as greedy_parts does.
template <Element P, Element W>
auto decode_head(int width, int vocab, int columns, int rounds) {
  return kernel("decode_head", [=](In<f32, 2> x, In<f32, 1> scale, In<f32, 1> shift, In<W, 2> head, Out<f32, 2> logits,
                                   Out<i32, 2> tokens, Out<f32, 2> scores, Scalar<f32> epsilon) {
    auto [b, n] = blocks(x.extent(0), cdiv(logits.extent(1), columns * rounds));
    Tile row = cast<P>(normalize(load(x, {b, 0}, {1, width}), width, scale, shift, epsilon));
    BestTokens best(n * (rounds * columns), columns);
    for (Index i : range(rounds)) {
      Tile w = cast<P>(load(head, {n * rounds + i, 0}, {columns, width}));
      Tile y = mma(row, transpose(w), zeros<f32>({1, columns}));
      store(logits, {b, n * rounds + i}, y);
      Tile token = (n * rounds + i) * columns + iota({1, columns}, 1);
      best.add(y, y, token, vocab);
    }
    best.store_best(tokens, scores, b, n);
  });
}

/// Weights [K,N] into [N,K]: decode steps read them along K.
template <Element To, Element From>
auto transpose_weights(int rows, int columns) {
  return kernel("transpose_weights", [=](In<From, 2> in, Out<To, 2> out) {
    auto [n, k] = blocks(cdiv(out.extent(0), columns), cdiv(out.extent(1), rows));
    store(out, {n, k}, transpose(cast<To>(load(in, {k, n}, {rows, columns}))));
  });
}

}  // namespace tessera::internal::kernels
