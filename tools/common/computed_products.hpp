// Matmuls of which one operand is computed in the loop over k.
#pragma once
#include "tessera/tessera.hpp"

namespace tessera::internal::kernels {

/// y [rows,N] = x [rows,K], converted to bf16, w [K,N].
inline auto linear_cast(MatmulTiles tiles) {
  return kernel("linear_cast", [=](In<f32, 2> x, In<bf16, 2> w, Out<bf16, 2> y) {
    require(x.extent(1) == w.extent(0), "inner extents agree");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(cast<bf16>(load(x, {m, k}, {tiles.m, tiles.k})), load(w, {k, n}, {tiles.k, tiles.n}), acc);
    store(y, {m, n}, cast<bf16>(acc));
  });
}

/// The mean and the reciprocal deviation, [rows,1], of each row of x [rows,C].
inline auto row_moments(int width) {
  return kernel("row_moments", [=](In<f32, 2> x, Out<f32, 2> mean, Out<f32, 2> rstd, Scalar<f32> epsilon) {
    require(x.extent(1) == width, "rows as wide as the kernel was made for");
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, width});
    Tile center = sum(xs, 1) / width;
    Tile centered = xs - center;
    store(mean, {row, 0}, center);
    store(rstd, {row, 0}, rsqrt(sum(centered * centered, 1) / width + epsilon));
  });
}

/// y [rows,N] = the layer norm of x [rows,K], by the moments of its rows, converted to bf16, w [K,N].
inline auto linear_norm(MatmulTiles tiles) {
  return kernel("linear_norm", [=](In<f32, 2> x, In<f32, 2> mean, In<f32, 2> rstd, In<f32, 1> weight, In<f32, 1> bias,
                                   In<bf16, 2> w, Out<bf16, 2> y) {
    require(x.extent(1) == w.extent(0), "inner extents agree");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Tile center = load(mean, {m, 0}, {tiles.m, 1}), scale = load(rstd, {m, 0}, {tiles.m, 1});
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k))) {
      Tile normal = (load(x, {m, k}, {tiles.m, tiles.k}) - center) * scale;
      Tile left = normal * load(weight, {k}, {tiles.k}) + load(bias, {k}, {tiles.k});
      acc = mma(cast<bf16>(left), load(w, {k, n}, {tiles.k, tiles.n}), acc);
    }
    store(y, {m, n}, cast<bf16>(acc));
  });
}

/// y [rows,N] = x [rows,K] (w scale), where w is i8 [K,N], or [N,K] if `nk`, and scale is [N].
inline auto linear_i8(MatmulTiles tiles, bool nk) {
  return kernel("linear_i8", [=](In<bf16, 2> x, In<i8, 2> w, In<f32, 1> scale, Out<bf16, 2> y) {
    require(x.extent(1) == w.extent(nk ? 1 : 0), "inner extents agree");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const auto right = nk ? w.permute({1, 0}) : w.permute({0, 1});
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(load(x, {m, k}, {tiles.m, tiles.k}), cast<bf16>(load(right, {k, n}, {tiles.k, tiles.n})), acc);
    store(y, {m, n}, cast<bf16>(acc * load(scale, {n}, {tiles.n})));
  });
}

/// y [rows,N] = x [rows,K] w, where w [K,N] is made of 4-bit numbers minus 8, two along k in each byte of [K / 2,N],
/// and a scale for each group of tiles.k of k: [K / tiles.k,N].
inline auto linear_i4(MatmulTiles tiles) {
  return kernel("linear_i4", [=](In<bf16, 2> x, In<u8, 2> w, In<f32, 2> scale, Out<bf16, 2> y) {
    require(x.extent(1) == 2 * w.extent(0), "inner extents agree");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k))) {
      Tile pairs = cast<i32>(load(w, {k, n}, {tiles.k / 2, tiles.n}));
      Tile weights = cast<f32>(interleave(pairs & 15, pairs >> 4, 0) - 8) * load(scale, {k, n}, {1, tiles.n});
      acc = mma(load(x, {m, k}, {tiles.m, tiles.k}), cast<bf16>(weights), acc);
    }
    store(y, {m, n}, cast<bf16>(acc));
  });
}

}  // namespace tessera::internal::kernels
