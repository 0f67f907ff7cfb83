// Matmuls whose left operand is computed in the loop over k.
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

}  // namespace tessera::internal::kernels
