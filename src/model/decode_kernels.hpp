// The kernels of a decode step on a GPU. Each does as much as it can between two exchanges among all CTAs: five
// launches a layer for few sequences. Rows are normalized, and parts of attention combined, by every CTA that needs
// them.
//
// Shapes and types as in kernels.hpp; T is 1. R rows in a tile; S parts of the keys, attended by one CTA each.
#pragma once
#include "model/kernels.hpp"
#include "model/tiles.hpp"

namespace tessera::internal::kernels {

/// Columns of queries, and of keys and of values, of heads of a width.
struct QkvWidths {
  int queries, keys, head;
  int all() const { return queries + 2 * keys; }
  int group() const { return queries / keys; }
};
/// The MLP between its matmuls, I wide.
struct Mlp {
  Activation activation = Activation::gelu_tanh;
  bool gated = false;
  int inner = 0;
};

/// Stores tile n of rows b of the queries, keys and values [B,Q+2K] of one new position of each sequence. `to` are the
/// queries [B,1,Q], and the cache of keys and values [B,P,K], where only sequences with a new position (count [B] is 1)
/// have theirs. A tile has columns of one of the three, `parts` of them those of a head group, K.
template <Element A>
void store_qkv(const Tile<A, 2>& y, const List<Out<A, 3>, 3>& to, const In<i32, 1>& past, const In<i32, 1>& count,
               const Index& b, const QkvTile& tile, int rows) {
  Tile sequence = b * rows + iota({rows}, 0);
  Tile position = sequence * to[tile.which].extent(1) + load(past, {b}, {rows});
  Tile in_cache = where(load(count, {b}, {rows}) > 0, position, -1);
  scatter(to[tile.which].flatten(0), where(tile.which == 0, sequence, in_cache), {tile.column}, y);
}

/// Queries, keys and values (see store_qkv) of the norm of x [B,C]: its product with w [C,Q+2K], plus bias.
template <Element P, Element W>
auto decode_qkv(int width, int rows, int columns, const QkvWidths& of, Norm norm = Norm::layer) {
  using A = Activations<P>;
  return kernel("decode_qkv", [=](In<f32, 2> x, In<f32, 1> scale, In<f32, 1> shift, In<W, 2> w, In<f32, 1> bias,
                                  In<i32, 1> past, In<i32, 1> count, List<Out<A, 3>, 3> to, Scalar<f32> epsilon) {
    require(w.extent(1) == of.all(), "queries, keys and values side by side");
    if (rows > 1) hints({.launch_dependents = false});  // attention has nothing to load before it must wait
    const int parts = of.keys / columns;
    auto [b, n] = blocks(cdiv(x.extent(0), rows), of.all() / columns);
    Tile row = cast<P>(normalize(load(x, {b, 0}, {rows, width}), norm, width, scale, shift, epsilon));
    Tile y = mma(row, cast<P>(load(w, {0, n}, {width, columns})), zeros<f32>({rows, columns}));
    store_qkv<A>(cast<A>(y + load(bias, {n}, {columns})), to, past, count, b,
                 tile_of_qkv(n, constant<i32>(parts), of.group()), rows);
  });
}

/// The same, with queries and keys rotated (see rotate_append). A CTA has `columns` / 2 columns of each half of a head.
template <Element P, Element W>
auto decode_rotated_qkv(int width, int rows, int columns, const QkvWidths& of, Norm norm) {
  using A = Activations<P>;
  return kernel("decode_rotated_qkv",
                [=](In<f32, 2> x, In<f32, 1> scale, In<f32, 1> shift, In<W, 2> w, In<f32, 1> bias, In<f32, 2> rotation,
                    In<i32, 1> past, In<i32, 1> count, List<Out<A, 3>, 3> to, Scalar<f32> epsilon) {
    require(w.extent(1) == of.all(), "queries, keys and values side by side");
    if (rows > 1) hints({.launch_dependents = false});         // as in decode_qkv
    const int wide = columns / 2, parts = of.head / 2 / wide;  // tiles of a half
    auto [b, n] = blocks(cdiv(x.extent(0), rows), of.all() / columns);
    Index head = n / parts, part = n % parts;
    Tile row = cast<P>(normalize(load(x, {b, 0}, {rows, width}), norm, width, scale, shift, epsilon));
    const auto product = [&](const Index& at) {
      return mma(row, cast<P>(load(w, {0, at}, {width, wide})), zeros<f32>({rows, wide})) + load(bias, {at}, {wide});
    };
    Tile left = product(head * (2 * parts) + part), right = product(head * (2 * parts) + parts + part);
    Tile position = load(past, {b}, {rows});
    Index turned = where(head * of.head < of.queries + of.keys, 1, 0);
    Tile cosine = where(turned == 1, gather(rotation, position, {part}, {wide}), 1.0f);
    Tile sine = where(turned == 1, gather(rotation, position, {parts + part}, {wide}), 0.0f);
    HeadHalves both = rotate({left, right}, cosine, sine);
    auto [which, of_which] = tile_of_qkv(head, constant<i32>(of.keys / of.head), of.group());
    store_qkv<A>(cast<A>(both.left), to, past, count, b, {which, of_which * (2 * parts) + part}, rows);
    store_qkv<A>(cast<A>(both.right), to, past, count, b, {which, of_which * (2 * parts) + parts + part}, rows);
  });
}

/// decode_qkv of rows that are normalized: in [B,C] w [C,Q+2K] + bias.
template <Element P, Element W>
auto decode_append(int width, int rows, int columns, const QkvWidths& of) {
  using A = Activations<P>;
  return kernel("decode_append", [=](In<A, 2> in, In<W, 2> w, In<f32, 1> bias, In<i32, 1> past, In<i32, 1> count,
                                     List<Out<A, 3>, 3> to) {
    require(w.extent(1) == of.all(), "queries, keys and values side by side");
    hints({.launch_dependents = false});  // as in decode_qkv
    const int parts = of.keys / columns;
    auto [b, n] = blocks(cdiv(in.extent(0), rows), of.all() / columns);
    Tile y = mma(cast<P>(load(in, {b, 0}, {rows, width})), cast<P>(load(w, {0, n}, {width, columns})),
                 zeros<f32>({rows, columns}));
    store_qkv<A>(cast<A>(y + load(bias, {n}, {columns})), to, past, count, b,
                 tile_of_qkv(n, constant<i32>(parts), of.group()), rows);
  });
}

/// The same for many sequences, with the tiles of a matmul.
template <Element P, Element W>
auto linear_append(MatmulTiles tiles, int group = 1, bool deterministic = false) {
  using A = Activations<P>;
  return kernel("linear_append",
                [=](In<A, 2> x, In<W, 2> w, In<f32, 1> bias, In<i32, 1> past, In<i32, 1> count, List<Out<A, 3>, 3> to) {
    require(x.extent(1) == w.extent(0), "inner extents agree");
    if (group > 1) require(w.extent(1) % ((group + 2) * tiles.n) == 0, "tiles divide the columns of keys");
    Index parts = cdiv(w.extent(1), (group + 2) * tiles.n);
    auto [m, n] = blocks(cdiv(x.extent(0), tiles.m), (group + 2) * parts);
    store_qkv<A>(cast<A>(matmul<P>(x, w, m, n, tiles, deterministic) + load(bias, {n}, {tiles.n})), to, past, count, m,
                 tile_of_qkv(n, parts, group), tiles.m);
  });
}

/// A query over a part of the keys: weighted values [1,1,d], the largest score in powers of 2, and the sum of the
/// weights, [1,1,1].
struct Attended {
  Tile<f32, 3> sums, top, norm;
};

/// The query of head h of sequence b over the keys and values of head h / group, in tiles of `keys` positions: `part`,
/// part + parts, ... Key i of a tile belongs to group i mod `groups`, and each group, a few lanes of a warp, has an
/// online softmax of its own: so warps exchange nothing until the end.
template <Element A>
Attended attend(const In<A, 2>& q, const In<A, 3>& keys, const In<A, 3>& values, const Index& length, const Index& b,
                const Index& h, const Index& part, int d, int group, int parts, const KeyTiles& tiles,
                const Scalar<f32>& scale, const ScoreRules& rules) {
  const int groups = tiles.groups, each = tiles.keys / groups;
  Index of_keys = group == 1 ? h : h / group;
  const auto tile = [&](const In<A, 3>& from, const Index& j) {
    return cast<f32>(reshape(load(from, {b, j, of_keys}, {1, tiles.keys, d}), {each, groups, d}));
  };
  const auto is_filled = [&](const Index& j) {
    return is_seen<3>(rules, j * tiles.keys + iota({each, groups, 1}, 0) * groups + iota({each, groups, 1}, 1), length);
  };
  Tile row = reshape(cast<f32>(load(q, {b, h}, {1, d})) * (scale * log2e), {1, 1, d});
  Var hi = full<f32>({1, groups, 1}, -1e30), total = zeros<f32>({1, groups, 1}), acc = zeros<f32>({1, groups, d});
  const auto add = [&](const Index& j, const Tile<f32, 3>& k, const Tile<f32, 3>& v) {
    Tile s = where(is_filled(j), capped(sum(k * row, 2), rules.cap * f32_log2e), -inf);
    Tile highest = maximum(hi, max(s, axis(0))), p = exp2(s - highest), a = exp2(hi - highest);
    total = total * a + sum(p, 0);
    acc = acc * a + sum(p * v, 0);
    hi = highest;
  };
  // Behind `length`, the cache may hold anything: scores there are not used, and values are 0, since 0 * NaN is NaN.
  // The loads of the first tile do not wait for the length, if that is not where they begin.
  const auto filled_keys = keys.slice(1, 0, length), filled_values = values.slice(1, 0, length);
  if (rules.window == 0) {
    add(part, tile(keys, part), where(is_filled(part), tile(values, part), 0.0f));
    for (Index i : range(1, cdiv(length, parts * tiles.keys))) {
      Index j = i * parts + part;
      add(j, tile(filled_keys, j), tile(filled_values, j));
    }
  } else {
    Index first = first_tile(rules, length - 1, tiles.keys);
    for (Index i : range(cdiv(length - first * tiles.keys, parts * tiles.keys))) {
      Index j = first + i * parts + part;
      add(j, tile(filled_keys, j), tile(filled_values, j));
    }
  }
  Tile top = max(hi, axis(1)), share = exp2(hi - top);
  return {sum(acc * share, 1), top, sum(total * share, 1)};
}

/// Attention of q [B,Q] over a part of the keys and values [B,P,K] (Flash-Decoding, Dao et al., 2023): for each part
/// the weighted values y [B,S,H,d], the largest score top [B,S,H], in powers of 2, and the sum of the weights norm.
template <Element P>
auto decode_part(int heads, int head_width, int parts, KeyTiles tiles, int group = 1, ScoreRules rules = {}) {
  using A = Activations<P>;
  const int d = head_width;
  return kernel("decode_part", [=](In<A, 2> q, In<A, 3> keys, In<A, 3> values, In<i32, 1> past, In<i32, 1> count,
                                   Out<f32, 4> y, Out<f32, 3> top, Out<f32, 3> norm, Scalar<f32> scale) {
    require(q.extent(1) == heads * d, "heads side by side");
    auto [part, h, b] = blocks(parts, heads, q.extent(0));
    Tile length = item(load(past, {b}, {1})) + item(load(count, {b}, {1}));
    Attended all = attend(q, keys, values, length, b, h, part, d, group, parts, tiles, scale, rules);
    store(y, {b, part, h, 0}, reshape(all.sums, {1, 1, 1, d}));
    store(top, {b, part, h}, all.top);
    store(norm, {b, part, h}, all.norm);
  });
}

/// The same over all keys: y [B,Q]. Queries are the first columns of q, which may be wider.
template <Element P>
auto decode_attend(int heads, int head_width, KeyTiles tiles, int group = 1, ScoreRules rules = {}) {
  using A = Activations<P>;
  const int d = head_width;
  return kernel("decode_attend", [=](In<A, 2> q, In<A, 3> keys, In<A, 3> values, In<i32, 1> past, In<i32, 1> count,
                                     Out<A, 2> y, Scalar<f32> scale) {
    require(q.extent(1) >= heads * d, "heads side by side");
    if (tiles.warps > 0) hints({.warps = tiles.warps});
    auto [b, h] = blocks(q.extent(0), heads);  // heads of a sequence, whose keys are neighbors in memory, at a time
    Tile length = item(load(past, {b}, {1})) + item(load(count, {b}, {1}));
    Attended all = attend(q, keys, values, length, b, h, constant<i32>(0), d, group, 1, tiles, scale, rules);
    store(y, {b, h}, reshape(cast<A>(all.sums / maximum(all.norm, 1e-30)), {1, d}));
  });
}

/// Tile b of the rows of x += rows [R,K] w [K,C] + bias, for tile n of `columns` columns; or x = that, if it is an
/// `update` that another kernel normalizes and adds.
template <Element P, Element W>
void add_product(const Tile<P, 2>& rows, const In<W, 2>& w, const In<f32, 1>& bias, const InOut<f32, 2>& x,
                 const Index& b, const Index& n, int count, int k, int columns, bool is_update) {
  Tile update = mma(rows, cast<P>(load(w, {0, n}, {k, columns})), zeros<f32>({count, columns}));
  if (is_update) return store(x, {b, n}, update + load(bias, {n}, {columns}));
  Tile residual = load(x, {b, n}, {count, columns});
  store(x, {b, n}, residual + (update + load(bias, {n}, {columns})));
}

/// x [B,C] += attended w [Q,C] + bias, or = for an `update`, where the parts of attention (see decode_part) are
/// combined first.
template <Element P, Element W>
auto decode_project(int heads, int head_width, int parts, int columns, bool is_update = false) {
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
    add_product<P>(row, w, bias, x, b, n, 1, width, columns, is_update);
  });
}

/// x [B,C] += in [B,K] w [K,C] + bias, or = for an `update`.
template <Element P, Element W>
auto decode_residual(int k, int rows, int columns, bool is_update = false) {
  using A = Activations<P>;
  return kernel("decode_residual", [=](In<A, 2> in, In<W, 2> w, In<f32, 1> bias, InOut<f32, 2> x) {
    auto [b, n] = blocks(cdiv(x.extent(0), rows), cdiv(w.extent(1), columns));
    add_product<P>(cast<P>(load(in, {b, 0}, {rows, k})), w, bias, x, b, n, rows, k, columns, is_update);
  });
}

/// activation(row w + bias) for tile n of `columns` columns; with a gate, whose columns are the first half of w,
/// activation(row gate + bias) times that of the second half.
template <Element P, Element W>
Tile<f32, 2> activated_product(const Tile<P, 2>& row, const In<W, 2>& w, const In<f32, 1>& bias, const Index& n,
                               int rows, int k, int columns, const Mlp& mlp) {
  const auto product = [&](const Index& at) {
    return mma(row, cast<P>(load(w, {0, at}, {k, columns})), zeros<f32>({rows, columns})) + load(bias, {at}, {columns});
  };
  if (!mlp.gated) return activated(mlp.activation, product(n));
  Tile gate = product(n), up = product(n + mlp.inner / columns);
  return activated(mlp.activation, gate) * up;
}

/// y [B,I] = activated_product of in [B,K].
template <Element P, Element W>
auto decode_linear(int k, int rows, int columns, const Mlp& mlp) {
  using A = Activations<P>;
  return kernel(name_with(mlp.gated ? "decode_gated" : "decode", mlp.activation),
                [=](In<A, 2> in, In<W, 2> w, In<f32, 1> bias, Out<A, 2> y) {
    auto [b, n] = blocks(cdiv(y.extent(0), rows), cdiv(y.extent(1), columns));
    Tile row = cast<P>(load(in, {b, 0}, {rows, k}));
    store(y, {b, n}, cast<A>(activated_product<P>(row, w, bias, n, rows, k, columns, mlp)));
  });
}

/// The name of a kernel of the norm and of activated_product.
inline const char* name_of_up(const Mlp& mlp) {
  return mlp.gated ? "decode_gated_up" : mlp.activation == Activation::none ? "decode_product" : "decode_up";
}

/// y [B,I] = activated_product of the norm of x [B,C].
template <Element P, Element W>
auto decode_up(int width, int rows, int columns, const Mlp& mlp, Norm norm = Norm::layer) {
  using A = Activations<P>;
  return kernel(name_of_up(mlp), [=](In<f32, 2> x, In<f32, 1> scale, In<f32, 1> shift, In<W, 2> w, In<f32, 1> bias,
                                     Out<A, 2> y, Scalar<f32> epsilon) {
    auto [b, n] = blocks(cdiv(x.extent(0), rows), cdiv(y.extent(1), columns));
    Tile row = cast<P>(normalize(load(x, {b, 0}, {rows, width}), norm, width, scale, shift, epsilon));
    store(y, {b, n}, cast<A>(activated_product<P>(row, w, bias, n, rows, width, columns, mlp)));
  });
}

/// Tile b of the residual stream [B,C] behind an update of it: x plus the norm of `update`. CTA n = 0 of the tile
/// stores it in `sum`, which is other memory than x, since other CTAs still read x.
inline Tile<f32, 2> updated(const In<f32, 2>& x, const In<f32, 2>& update, const In<f32, 1>& weight,
                            const Out<f32, 2>& sum, const Index& b, const Index& n, int rows, int width,
                            const Scalar<f32>& epsilon) {
  Tile change = normalize(load(update, {b, 0}, {rows, width}), Norm::rms, width, weight, weight, epsilon);
  Tile stream = load(x, {b, 0}, {rows, width}) + change;
  store(sum.slice(0, 0, where(n == 0, sum.extent(0), 0)), {b, 0}, stream);
  return stream;
}

/// decode_up of a residual stream that has an update (see updated).
template <Element P, Element W>
auto decode_up_behind(int width, int rows, int columns, const Mlp& mlp, Norm norm) {
  using A = Activations<P>;
  return kernel(name_of_up(mlp),
                [=](In<f32, 2> x, In<f32, 2> update, In<f32, 1> weight, In<f32, 1> scale, In<f32, 1> shift, In<W, 2> w,
                    In<f32, 1> bias, Out<A, 2> y, Out<f32, 2> sum, Scalar<f32> epsilon) {
    auto [b, n] = blocks(cdiv(x.extent(0), rows), cdiv(y.extent(1), columns));
    Tile stream = updated(x, update, weight, sum, b, n, rows, width, epsilon);
    Tile row = cast<P>(normalize(stream, norm, width, scale, shift, epsilon));
    store(y, {b, n}, cast<A>(activated_product<P>(row, w, bias, n, rows, width, columns, mlp)));
  });
}

/// logits [B,N] = norm of x [B,C], times the transposed head [V,C], capped; 0 behind V. Each CTA has `rounds` tiles of
/// columns, and gives the best of its tokens and their score, as greedy_parts does.
template <Element P, Element W>
auto decode_head(int width, int vocab, int columns, int rounds, Norm norm = Norm::layer, float cap = 0) {
  return kernel("decode_head", [=](In<f32, 2> x, In<f32, 1> scale, In<f32, 1> shift, In<W, 2> head, Out<f32, 2> logits,
                                   Out<i32, 2> tokens, Out<f32, 2> scores, Scalar<f32> epsilon) {
    auto [b, n] = blocks(x.extent(0), cdiv(logits.extent(1), columns * rounds));
    Tile row = cast<P>(normalize(load(x, {b, 0}, {1, width}), norm, width, scale, shift, epsilon));
    BestTokens best(n * (rounds * columns), columns);
    for (Index i : range(rounds)) {
      Tile w = cast<P>(load(head, {n * rounds + i, 0}, {columns, width}));
      Tile y = capped(mma(row, transpose(w), zeros<f32>({1, columns})), cap);
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
