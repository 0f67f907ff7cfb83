#include "model/tiles.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace tessera::internal {
namespace {

int power_at_least(int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))); }
int power_at_most(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

}  // namespace

AttentionTiles attention_tiles(const TileTarget& target) {
  if (!target.gpu) return {32, 64};
  // Wider than the registers hold: the rest of a tile is in memory, and fewer rows keep it small.
  if (target.head_width > 512) return {16, 8};
  if (target.head_width > 256) return {16, 16};
  if (target.operands == ElementType::f32) return {64, 32};
  // A warp group has 64 rows. With 128 columns of the result, registers hold 160 scores for two groups; with 64
  // columns, those of three groups. On an H200, large tiles pay off if there are many iterations.
  const bool is_half = target.operands == ElementType::f16 || target.operands == ElementType::bf16;
  if (target.wgmma && is_half && target.head_width <= 128 && target.head_width % 64 == 0)
    return target.head_width == 64 ? AttentionTiles{target.seen < 1024 ? 128 : 192, 128}
                                   : AttentionTiles{128, target.seen < 2048 ? 128 : 160};
  // Rows of the result stay in registers together with the scores: the wider they are, the fewer scores fit.
  if (target.head_width > 128) return {16, 16};
  const int keys = target.operands == ElementType::bf16 ? 64 : 32;
  return {64, target.head_width > 64 ? keys / 2 : keys};
}

DecodeTiles decode_tiles(const TileTarget& target) {
  constexpr int warps = 8, multiprocessors = 132;
  const int limit = target.operands == ElementType::bf16 ? 120 : 64;  // those of 16 bits take half a register
  // The weights that a thread holds: a warp has columns of its own, or shares one if there are few.
  const auto elements = [](int k, int columns) {
    const int sharing = std::max(warps / columns, 1);
    return ceil_div(k, 256 * sharing) * 8 * ceil_div(columns, warps);
  };
  const auto most = [&](int k, int columns, int wanted) {
    while (columns > 1 && (elements(k, columns) > std::min(wanted, limit) || target.width % columns != 0)) columns /= 2;
    return columns;
  };
  // A multiprocessor has tiles one after another, each with a fixed cost of about 8 columns. Queries, keys and values
  // are in different tiles, so that columns divide the width.
  const auto best = [&](int n, int first, int step, const auto& fits) {
    int columns = first, least = std::numeric_limits<int>::max();
    for (int wide = 8; wide <= 32; wide += step) {
      const int cost = ceil_div(ceil_div(n, wide), multiprocessors) * (wide + 8);
      if (target.width % wide == 0 && fits(wide) && cost < least) least = cost, columns = wide;
    }
    return columns;
  };
  // Several rows and the weights of a tile are in shared memory, all at once. If eight warps cannot have equal slices
  // of k, fewer do, and two share the columns, 8 for each.
  constexpr int rows = 16, exchanges = 16 * 1024;
  const auto best_of_batch = [&](int n, int k) {
    return best(n, 0, 8, [&](int wide) {
      const int stored = k % (16 * warps) == 0 ? wide : std::max(wide, 16);
      return wide * target.width <= 32 * 1024 && (rows + stored) * k * 2 <= target.shared_bytes - exchanges;
    });
  };
  const int batch_columns = best_of_batch(target.inner, target.width);
  const int heads = target.width / std::max(target.head_width, 1);
  return {.columns = best(target.inner, most(target.width, 8, limit), 4,
                          [&](int wide) { return elements(target.width, wide) <= limit; }),
          // Most GPUs' shared memory holds no weights of 32 bits.
          .rows = batch_columns > 0 && target.operands == ElementType::bf16 ? rows : 0,
          .normalizes = target.width <= 1024,  // registers hold no wider rows
          .batch_columns = batch_columns,
          .batch_project = best_of_batch(target.width, target.width),
          .batch_down = best_of_batch(target.width, target.inner),
          .project = most(target.width, 16, 80),
          .down = most(target.inner, 4, 96),
          .head = most(target.width, 16, 64),
          .rounds = 8,
          .parts = heads <= 20 ? 8 : 4};
}

// 256 threads, each with 16 bytes of a key and of its values.
KeyTiles key_tiles(const TileTarget& target) {
  const bool is_half = target.operands == ElementType::bf16;
  const int groups = std::clamp((is_half ? 2048 : 1024) / power_at_least(target.head_width), 1, 128);
  return {.keys = groups, .groups = groups, .occupancy = is_half ? 4 : 0};
}
KeyTiles few_key_tiles(const TileTarget& target) {
  const KeyTiles tiles = key_tiles(target);
  return {.keys = 2 * tiles.keys, .groups = tiles.groups};
}

bool has_decode_kernels(const TileTarget& target) {
  // Columns of queries must not cross into keys: a width without a suitable divisor has no tiles.
  return target.gpu && target.operands != ElementType::f32 && target.width <= 2048 && target.head_width <= 128 &&
         decode_tiles(target).columns >= 4;
}

int norm_rows(const TileTarget& target) { return target.gpu ? power_at_most(std::max(1024 / target.width, 1)) : 1; }

int copy_rows(const TileTarget& target) {
  return target.gpu ? power_at_most(std::clamp(4096 / target.width, 1, 64)) : 8;
}

}  // namespace tessera::internal
