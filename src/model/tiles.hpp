// Extents of the tiles of the model's kernels, by plain rules for each kind of device.
#pragma once
#include "model/kernels.hpp"

namespace tessera {

/// What tiles depend on.
struct TileTarget {
  bool gpu = false;        ///< tiles for registers and shared memory, not for a CPU's caches
  ElementType operands{};  ///< of products: f32, tf32 or bf16
  int width = 0, head_width = 0;
  int multiprocessors = 0;  ///< of a GPU whose products are made by warp groups (sm_90a); 0: of any other device
};

/// Rows and columns of a product, and its inner extent.
struct ProductExtents {
  std::int64_t m, n, k;
};
/// Tiles for one product, without a search: those of which a model of the GPU's time says the least.
kernels::ProductTiles choose(const TileTarget& target, const ProductExtents& extents);

/// Rows of x in the tiles of a product y = x w, for so many in all. It takes few values, and kernels made for one serve
/// any number of rows.
int product_rows(const TileTarget& target, std::int64_t rows);
/// Tiles of a product with w [in, out], and with the head, of which w is the transpose; `m` is of product_rows().
kernels::ProductTiles linear_tiles(const TileTarget& target, int m);
kernels::ProductTiles head_tiles(const TileTarget& target, int m);

/// Positions of queries and of keys for which attention computes scores at a time.
struct AttentionTiles {
  int queries, keys;
};
AttentionTiles attention_tiles(const TileTarget& target);
/// Positions of keys at a time where there is one query.
int decode_keys(const TileTarget& target);

/// Rows of the model's width in a tile of a layer norm, and of a kernel that only moves them.
int norm_rows(const TileTarget& target);
int copy_rows(const TileTarget& target);

}  // namespace tessera
