// Memory-bound kernels, as their author would write them.
#pragma once
#include "model/kernels.hpp"

namespace tessera::internal::bench {

/// Elements of a CTA that reads memory in one pass: 4 KB, one 16-byte access for each of 256 threads.
template <Element T>
inline constexpr int elements_per_block = 4096 / sizeof(T);

/// Elements per iteration of a CTA that loops over memory.
inline constexpr int elements_per_round = 4096;

/// Rows per CTA, the fastest on an H200: one warp per short row, several warps for one long row.
template <Element T>
int rows_per_block(int width) {
  if (width * sizeof(T) < 2048) return 4;
  return width <= 2048 ? 1 : 2;
}

template <Element T>
auto copy_kernel() {
  return kernel("copy", [](In<T, 1> x, Out<T, 1> y) {
    Index block = blocks(cdiv(x.extent(0), elements_per_block<T>));
    store(y, {block}, load(x, {block}, {elements_per_block<T>}));
  });
}

template <Element T>
auto gelu_kernel() {
  return kernel("gelu", [](In<T, 1> x, Out<T, 1> y) {
    Index block = blocks(cdiv(x.extent(0), elements_per_block<T>));
    store(y, {block}, cast<T>(gelu_tanh(cast<f32>(load(x, {block}, {elements_per_block<T>})))));
  });
}

template <Element T>
auto layer_norm_kernel(int width) {
  const int rows = rows_per_block<T>(width);
  return kernel("layer_norm", [=](In<T, 2> x, In<T, 1> weight, In<T, 1> bias, Out<T, 2> y, Scalar<f32> epsilon) {
    Index row = blocks(cdiv(x.extent(0), rows));
    Tile in = cast<f32>(load(x, {row, 0}, {rows, width}));
    Tile centered = in - sum(in, 1) / width;
    Tile rstd = rsqrt(sum(centered * centered, 1) / width + epsilon);
    Tile scale = cast<f32>(load(weight, {0}, {width})), shift = cast<f32>(load(bias, {0}, {width}));
    store(y, {row, 0}, cast<T>(centered * rstd * scale + shift));
  });
}

/// Normalizes rows to a mean square of 1, then scales them (Zhang and Sennrich, 2019).
template <Element T>
auto rms_norm_kernel(int width) {
  const int rows = rows_per_block<T>(width);
  return kernel("rms_norm", [=](In<T, 2> x, In<T, 1> weight, Out<T, 2> y, Scalar<f32> epsilon) {
    Index row = blocks(cdiv(x.extent(0), rows));
    Tile in = cast<f32>(load(x, {row, 0}, {rows, width}));
    Tile factor = rsqrt(sum(in * in, 1) / width + epsilon);
    store(y, {row, 0}, cast<T>(in * factor * cast<f32>(load(weight, {0}, {width}))));
  });
}

template <Element T>
auto softmax_kernel(int width) {
  const int rows = rows_per_block<T>(width);
  return kernel("softmax", [=](In<T, 2> x, Out<T, 2> y) {
    Index row = blocks(cdiv(x.extent(0), rows));
    Tile in = cast<f32>(load(x, {row, 0}, {rows, width})) * log2e;
    Tile e = exp2(in - max(in, 1));
    store(y, {row, 0}, cast<T>(e * (1 / sum(e, 1))));
  });
}

/// The loss of each row, -log softmax(logits [rows,V]) at targets [rows], for rows of `vocab` logits stored back to
/// back and passed as [rows V / 16 bytes, 16 bytes]: wherever a row begins, accesses are whole. Logits are read once:
/// each of `lines` has its own running maximum and sum, online (Milakov and Gimelshein, 2018), which are combined at
/// the end.
template <Element T>
auto cross_entropy_kernel(int vocab) {
  constexpr int width = 16 / sizeof(T), lines = 640;
  return kernel("cross_entropy", [=](In<T, 2> logits, In<i32, 1> targets, Out<f32, 1> loss) {
    require(logits.extent(1) == width, "logits in pieces of 16 bytes");
    require(logits.extent(0) * width == targets.extent(0) * vocab, "a target for each row");
    Index row = blocks(targets.extent(0));
    Tile begin = row * vocab, end = begin + vocab;
    Tile first = cdiv(begin, width), last = end / width;  // the pieces that belong to this row entirely
    const auto inner = logits.slice(0, first, last - first);
    // The row's elements in the pieces before and after those. Each line starts from them and has a share of their sum.
    Tile at = iota({1, width}, 1);
    Tile before = cast<f32>(load(logits, {first - 1, 0}, {1, width})) * log2e;
    Tile behind = cast<f32>(load(logits, {last, 0}, {1, width})) * log2e;
    Tile head = where((first - 1) * width + at >= begin, before, -inf);
    Tile tail = where(last * width + at < end, behind, -inf);
    Tile edge = maximum(maximum(max(head, 1), max(tail, 1)), -1e30f);
    Tile part = (sum(exp2(head - edge), 1) + sum(exp2(tail - edge), 1)) * (1.0f / static_cast<float>(lines));
    Var top = full<f32>({lines, 1}, 0) + edge, norm = full<f32>({lines, 1}, 0) + part;
    for (Index i : range(cdiv(last - first, lines))) {
      Tile x = cast<f32>(load(inner, {i, 0}, {lines, width}, -inf));
      Tile hi = maximum(top, max(x, 1) * log2e);
      norm = norm * exp2(top - hi) + sum(exp2(x * log2e - hi), 1);
      top = hi;
    }
    Tile target = begin + item(load(targets, {row}, {1}));
    Tile wanted = cast<f32>(load(logits.slice(0, target / width, 1).slice(1, target % width, 1), {0, 0}, {1, 1}));
    Tile hi = max(top, Axis(0));
    Tile total = sum(norm * exp2(top - hi), 0);
    // The target's logit comes first in the expression, so it is read before lines are combined.
    store(loss, {row}, reshape(-(wanted - hi * (1 / log2e) - log(total)), {1}));
  });
}

/// y = x transposed.
template <Element T>
auto transpose_kernel() {
  const int tile = 256 / sizeof(T);  // two cache lines in both directions
  return kernel("transpose", [=](In<T, 2> x, Out<T, 2> y) {
    auto [i, j] = blocks(cdiv(x.extent(0), tile), cdiv(x.extent(1), tile));
    store(y, {j, i}, transpose(load(x, {i, j}, {tile, tile})));
  });
}

/// y [parts] = the sums of as many parts of x; y = the sum of x, if y has one element.
inline auto sum_kernel() {
  return kernel("sum", [](In<f32, 1> x, Out<f32, 1> y) {
    Index part = blocks(y.extent(0));
    Tile count = cdiv(cdiv(x.extent(0), elements_per_round), y.extent(0));
    Var acc = zeros<f32>({elements_per_round});
    for (Index i : range(count)) acc = acc + load(x, {part * count + i}, {elements_per_round});
    store(y, {part}, sum(acc, 0));
  });
}

/// Inclusive sums along rows.
inline auto cumsum_kernel(int width) {
  return kernel("cumsum", [=](In<f32, 2> x, Out<f32, 2> y) {
    Index row = blocks(x.extent(0));
    store(y, {row, 0}, cumsum(load(x, {row, 0}, {1, width}), 1));
  });
}

/// y [1,n] = x [1,k] w, where w is [n,k] or [k,n].
template <Element T>
auto gemv_kernel(MatmulTiles tiles, bool nk) {
  return kernel("gemv", [=](In<T, 2> x, In<T, 2> w, Out<T, 2> y) {
    require(x.extent(1) == w.extent(nk ? 1 : 0), "inner extents agree");
    Index n = blocks(cdiv(y.extent(1), tiles.n));
    const auto right = nk ? w.permute({1, 0}) : w.permute({0, 1});
    Var acc = zeros<f32>({1, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(load(x, {0, k}, {1, tiles.k}), load(right, {k, n}, {tiles.k, tiles.n}), acc);
    store(y, {0, n}, cast<T>(acc));
  });
}

}  // namespace tessera::internal::bench
