// Tile extents of the model's kernels, by plain rules for each kind of device. Tiles of matmuls are selected by
// choose().
#pragma once
#include <compare>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "jit/launch/attention_tiles.hpp"
#include "tessera/graph/element.hpp"
#include "tessera/jit/choose.hpp"

namespace tessera::internal {

template <std::integral A, std::integral B>
constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

/// The inputs of these rules.
struct TileTarget {
  bool gpu = false;        ///< tiles for registers and shared memory instead of CPU caches
  bool wgmma = false;      ///< and for the tensor cores of sm_90a
  ElementType operands{};  ///< of matmuls: f32, tf32 or bf16
  int width = 0, head_width = 0, inner = 0;
  int query_width = 0, key_width = 0;  ///< columns of queries, and of keys and of values; 0: the width
  bool rotary = false;                 ///< are queries and keys rotated?
  bool separate_rotation = false;      ///< by a kernel of its own in decode steps, too?
  bool gated = false;                  ///< has the MLP a gate?
  int shared_bytes = 227 * 1024;       ///< of shared memory that a CTA may have
  bool spare_registers = true;         ///< beside matmuls; ptxas leaves fewer from sm_100 on
  std::int64_t seen = 1024;            ///< mean number of keys that a query sees
  /// The result of a row has the same bits whatever the number of rows: sums have one order.
  bool batch_invariant = false;
};

AttentionTiles attention_tiles(const TileTarget& target);
/// For one position of each sequence, whose keys are added up in the same order.
AttentionTiles tiles_of_one(const TileTarget& target);

/// Tiles of the head that also finds the best token of each, where `chosen` are those of the matmul alone:
/// beside that, registers hold fewer accumulators.
MatmulTiles greedy_head_tiles(const TileTarget& target, std::int64_t rows, const MatmulTiles& chosen);

/// Tiles of a query's keys on a GPU; see attend().
struct KeyTiles {
  int keys, groups;  ///< `groups` divides `keys`
  int warps = 0;     ///< of a CTA; 0: as many as the compiler chooses
  auto operator<=>(const KeyTiles&) const = default;
};
/// For a kernel of so many CTAs.
KeyTiles key_tiles(const TileTarget& target, std::int64_t blocks);
/// For parts of the keys of one sequence, of which most have one tile.
KeyTiles part_key_tiles(const TileTarget& target);

/// Rows of a tile of several sequences whose rows and weights are in shared memory at once.
inline constexpr int rows_of_block = 16;
/// The columns of such tiles of a matmul of `rows` rows of k with [k,n]; 0: other tiles are faster, or shared memory
/// holds no such tiles.
int columns_of_block(const TileTarget& target, std::int64_t rows, int n, int k);

/// Tiles of the kernels of a decode step of few sequences; see decode_kernels.hpp.
struct DecodeTiles {
  int qkv, up;              ///< columns of QKV and of the MLP's first matmul (and of its gate), for one sequence
  bool normalizes;          ///< do the kernels of several sequences normalize their rows?
  int batch_qkv, batch_up;  ///< the same for rows_of_block sequences; 0: none
  int project;              ///< columns of the projection, for one sequence
  int down;                 ///< of the second matmul of the MLP, which has the longest
  int head;                 ///< of the head
  int rounds;               ///< tiles of the head for one CTA
  int parts;                ///< of the cache
};
DecodeTiles decode_tiles(const TileTarget& target);
/// Why such steps have no kernels of their own; empty: they have. These need weights that are contiguous along k.
std::string why_no_decode_kernels(const TileTarget& target);
inline bool has_decode_kernels(const TileTarget& target) { return why_no_decode_kernels(target).empty(); }

/// The tile of a layer norm of so many rows.
struct NormTiles {
  int rows;
  int warps = 0;    ///< of a CTA; 0: as many as the compiler chooses
  int columns = 0;  ///< more than the width, so that all warps share a row; 0: the width
  auto operator<=>(const NormTiles&) const = default;
};
NormTiles norm_tiles(const TileTarget& target, std::int64_t rows);
/// Columns of a tile of multiply_by_gate.
int columns_of_gate(const TileTarget& target, int inner);
/// Rows in a tile of a kernel that only copies them.
int copy_rows(const TileTarget& target);

}  // namespace tessera::internal
