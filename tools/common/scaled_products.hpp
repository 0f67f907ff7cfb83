// Matmuls of fp8 operands with scales.
#pragma once
#include "tessera/tessera.hpp"

namespace tessera::internal::kernels {

/// y [m,n] = scale_x scale_w x [m,k] w [n,k] of fp8: one scale for each operand, or one for each of its rows.
inline auto scaled_mm(MatmulTiles tiles, bool by_row) {
  return kernel("scaled_mm",
                [=](In<f8e4m3, 2> x, In<f8e4m3, 2> w, In<f32, 2> scale_x, In<f32, 2> scale_w, Out<bf16, 2> y) {
    require(x.extent(1) == w.extent(1), "inner extents agree");
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(load(x, {m, k}, {tiles.m, tiles.k}), transpose(load(w, {n, k}, {tiles.n, tiles.k})), acc);
    if (by_row)
      store(y, {m, n}, cast<bf16>(acc * load(scale_x, {m, 0}, {tiles.m, 1}) * load(scale_w, {0, n}, {1, tiles.n})));
    else
      store(y, {m, n}, cast<bf16>(acc * load(scale_x, {0, 0}, {1, 1}) * load(scale_w, {0, 0}, {1, 1})));
  });
}

}  // namespace tessera::internal::kernels
