// Tile extents of the model's kernels, by plain rules for each kind of device. Tiles of matmuls are selected by
// choose().
#pragma once
#include "tessera/graph/element.hpp"

namespace tessera::internal {

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// The inputs of these rules.
struct TileTarget {
  bool gpu = false;        ///< tiles for registers and shared memory instead of CPU caches
  bool wgmma = false;      ///< and for the tensor cores of sm_90a
  ElementType operands{};  ///< of matmuls: f32, tf32 or bf16
  int width = 0, head_width = 0, inner = 0;
  int shared_bytes = 227 * 1024;  ///< of shared memory that a CTA may have
  std::int64_t seen = 1024;       ///< mean number of keys that a query sees
};

/// Positions of queries and of keys in one tile of scores.
struct AttentionTiles {
  int queries, keys;
};
AttentionTiles attention_tiles(const TileTarget& target);

/// Tiles of a query's keys on a GPU; see attend().
struct KeyTiles {
  int keys, groups;   ///< `groups` divides `keys`
  int occupancy = 0;  ///< CTAs of a multiprocessor; 0: as many as the compiler finds
};
/// For a kernel whose CTAs fill the GPU several times, and for one with few CTAs, each of which has more keys at a
/// time.
KeyTiles key_tiles(const TileTarget& target);
KeyTiles few_key_tiles(const TileTarget& target);

/// Tiles of the kernels of a decode step of few sequences; see decode_kernels.hpp.
struct DecodeTiles {
  int columns;        ///< of QKV and the first matmul of the MLP, for one CTA and one sequence
  int rows;           ///< in a tile of several sequences; 0: no such tiles
  bool normalizes;    ///< do the kernels with such tiles normalize their rows?
  int batch_columns;  ///< columns of QKV and the first matmul of the MLP with such tiles
  int batch_project;  ///< of the projection
  int batch_down;     ///< of the second matmul of the MLP; 0: shared memory holds no such tiles
  int project;        ///< columns of the projection, for one sequence
  int down;           ///< of the second matmul of the MLP, which has the longest
  int head;           ///< of the head
  int rounds;         ///< tiles of the head for one CTA
  int parts;          ///< of the cache
};
DecodeTiles decode_tiles(const TileTarget& target);
/// Do such steps have kernels of their own? They need weights that are contiguous along k.
bool has_decode_kernels(const TileTarget& target);

/// Rows of the model's width in a tile: of a layer norm, and of a kernel that only copies them.
int norm_rows(const TileTarget& target);
int copy_rows(const TileTarget& target);

}  // namespace tessera::internal
