// Grouped matmuls, as mixtures of experts need them: rows that are sorted by expert, each expert with a matrix of its
// own.
#pragma once
#include "tessera/tessera.hpp"

namespace tessera::internal::kernels {

/// y [rows,N] = x [rows,K] times the matrix in w [experts,K,N] of the expert of a row; an expert has whole tiles of
/// rows, and `expert_of_tile` [tiles of rows] says whose each is.
inline auto grouped_mm(MatmulTiles tiles) {
  return kernel("grouped_mm", [=](In<bf16, 2> x, In<bf16, 3> w, In<i32, 1> expert_of_tile, Out<bf16, 2> y) {
    require(x.extent(1) == w.extent(1), "inner extents agree");
    require(expert_of_tile.extent(0) == cdiv(x.extent(0), tiles.m), "an expert for each tile of rows");
    auto [m, n] = blocks(expert_of_tile.extent(0), cdiv(w.extent(2), tiles.n));
    Index expert = item(load(expert_of_tile, {m}, {1}));
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(load(x, {m, k}, {tiles.m, tiles.k}), squeeze(load(w, {expert, k, n}, {1, tiles.k, tiles.n}), 0), acc);
    store(y, {m, n}, cast<bf16>(acc));
  });
}

/// The same for experts with any numbers of rows: those of expert e begin at row starts[e], and end where those of the
/// next begin; `most` rows belong to one.
inline auto grouped_mm_any(MatmulTiles tiles) {
  return kernel("grouped_mm_any",
                [=](In<bf16, 2> x, In<bf16, 3> w, In<i32, 1> starts, Scalar<i32> most, Out<bf16, 2> y) {
    require(x.extent(1) == w.extent(1), "inner extents agree");
    require(starts.extent(0) == w.extent(0) + 1, "a start for each expert, and the end of the last");
    auto [m, n, expert] = blocks(cdiv(most, tiles.m), cdiv(w.extent(2), tiles.n), w.extent(0));
    Index first = item(load(starts, {expert}, {1}));
    Index count = item(load(starts, {expert + 1}, {1})) - first;
    const auto own_x = x.slice(0, first, count);
    const auto own_y = y.slice(0, first, count);
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k)))
      acc =
          mma(load(own_x, {m, k}, {tiles.m, tiles.k}), squeeze(load(w, {expert, k, n}, {1, tiles.k, tiles.n}), 0), acc);
    store(own_y, {m, n}, cast<bf16>(acc));
  });
}

}  // namespace tessera::internal::kernels
