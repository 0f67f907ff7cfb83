// Extents of the tiles of the model's kernels, by plain rules for each kind of device; those of products are
// choose()'s.
#pragma once
#include "tessera/graph/element.hpp"

namespace tessera::internal {

/// What tiles depend on.
struct TileTarget {
  bool gpu = false;        ///< tiles for registers and shared memory, not for a CPU's caches
  bool wgmma = false;      ///< and for sm_90a's matrix units
  ElementType operands{};  ///< of products: f32, tf32 or bf16
  int width = 0, head_width = 0;
  std::int64_t seen = 1024;  ///< keys that a query sees in the mean
};

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

}  // namespace tessera::internal
