#include "model/tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <string_view>

namespace tessera::internal {
namespace {

int power_at_least(int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))); }
int power_at_most(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

AttentionShape shape_of(const TileTarget& target) {
  return {target.operands, target.head_width, target.seen, target.batch_invariant};
}

}  // namespace

AttentionTiles attention_tiles(const TileTarget& target) {
  return attention_tiles(shape_of(target), target.gpu, target.wgmma);
}

// With one valid row of a tile, latencies are most of the time: other CTAs of the multiprocessor hide them.
AttentionTiles tiles_of_one(const TileTarget& target) {
  AttentionTiles tiles = attention_tiles(target);
  if (!target.gpu) tiles.queries = 2;
  if (target.wgmma && has_fused_attention(shape_of(target))) tiles.queries = 64, tiles.blocks = 3;
  return tiles;
}

MatmulTiles greedy_head_tiles(const TileTarget& target, std::int64_t rows, const MatmulTiles& chosen) {
  MatmulTiles tiles = chosen;
  if (!target.gpu || chosen.m * chosen.n <= 64 * 128) return tiles;
  const bool few = rows <= 64 || !target.wgmma || target.batch_invariant;
  tiles.m = few ? 64 : 128, tiles.n = few ? 128 : 96;
  return tiles;
}

namespace {

constexpr int multiprocessors = 132;

// The columns of a CTA, a multiple of `step`, for `tiles` tiles of rows of [k,n]. A multiprocessor has CTAs one after
// another, each with a fixed cost of about 8 columns.
int best_columns(std::int64_t tiles, int n, int first, int step, int most, const auto& fits) {
  int columns = first;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int wide = 8; wide <= most; wide += step) {
    const std::int64_t cost = ceil_div(tiles * ceil_div(n, wide), multiprocessors) * (wide + 8);
    if (fits(wide) && cost <= least) least = cost, columns = wide;
  }
  return columns;
}

// Does shared memory hold the rows and `columns` of weights, all at once? If eight warps cannot have equal slices of k,
// fewer do, and two share the columns, 8 for each.
bool holds_block(const TileTarget& target, int k, int columns) {
  constexpr int warps = 8, exchanges = 16 * 1024;
  const int stored = k % (16 * warps) == 0 ? columns : std::max(columns, 16);
  return (rows_of_block + stored) * k * 2 <= target.shared_bytes - exchanges;
}

}  // namespace

int columns_of_block(const TileTarget& target, std::int64_t rows, int n, int k) {
  // Most GPUs' shared memory holds no weights of 32 bits.
  if (!has_decode_kernels(target) || target.operands != ElementType::bf16 || rows < 2) return 0;
  if (target.batch_invariant) return 0;  // their warps have slices of k
  const std::int64_t tiles = ceil_div(rows, rows_of_block);
  return best_columns(tiles, n, 0, 8, 32, [&](int wide) {
    // Each tile of rows reads the weights again: more than one must have a multiprocessor for each CTA.
    return n % wide == 0 && holds_block(target, k, wide) && (tiles == 1 || tiles * (n / wide) <= multiprocessors);
  });
}

DecodeTiles decode_tiles(const TileTarget& target) {
  constexpr int warps = 8, threads = 256;
  const bool is_half = target.operands == ElementType::bf16;
  const int width = target.width;
  const int limit = is_half ? 120 : 64;  // those of 16 bits take half a register
  // The weights that a thread holds: a warp has columns of its own, or shares one if there are few.
  const auto elements = [](int k, int columns) {
    const int sharing = std::max(warps / columns, 1);
    return ceil_div(k, 256 * sharing) * 8 * ceil_div(columns, warps);
  };
  const auto most = [&](int k, int columns, int wanted) {
    while (columns > 1 && (elements(k, columns) > std::min(wanted, limit) || width % columns != 0)) columns /= 2;
    return columns;
  };
  // Queries, keys and values are in different tiles. A tile of a rotated head has the same columns of both halves, and
  // one of an MLP with a gate has columns of both, so that it has two products.
  const int query_width = target.query_width > 0 ? target.query_width : width;
  const int key_width = target.key_width > 0 ? target.key_width : width, qkv_width = query_width + 2 * key_width;
  const bool rotates = target.rotary && !target.separate_rotation;
  const auto divides_qkv = [&](int wide) {
    return (rotates ? target.head_width : target.separate_rotation ? qkv_width : key_width) % wide == 0;
  };
  const auto columns = [&](int n, int products, const auto& divides) {
    const int few = products == 1 ? most(width, 8, limit) : 0;
    return best_columns(1, n, few > 0 && divides(few) ? few : 0, 4, 32, [&](int wide) {
      return wide % products == 0 && divides(wide) && products * elements(width, wide / products) <= limit;
    });
  };
  const bool has_rows_in_registers = width <= (target.spare_registers ? 1024 : 768);
  const int products_of_qkv = rotates ? 2 : 1, products_of_up = target.gated ? 2 : 1;
  const auto batch_columns = [&](int n, int products, const auto& divides) {
    const int found = best_columns(1, n, 0, 8, has_rows_in_registers ? 32 : 48, [&](int wide) {
      return wide % (8 * products) == 0 && divides(wide) && holds_block(target, width, wide);
    });
    // A multiprocessor has shared memory for one such CTA, and a second wave would cost as much as the first.
    return is_half && found > 0 && ceil_div(n, found) <= multiprocessors ? found : 0;
  };
  const auto divides_inner = [&](int wide) { return target.inner % (wide / products_of_up) == 0; };
  int batch_qkv = batch_columns(qkv_width, products_of_qkv, divides_qkv);
  const int up_width = products_of_up * target.inner;
  const int batch_up = batch_columns(up_width, products_of_up, divides_inner) / products_of_up;
  const bool normalizes = has_rows_in_registers && batch_qkv > 0 && batch_up > 0;
  if (target.rotary && !normalizes) batch_qkv = 0;  // no kernel rotates the products of other rows
  // Each CTA of the projection combines the parts of attention, so that few are better.
  int project = std::clamp(std::min(limit, 80) * threads / query_width, 1, 16);
  while (width % project != 0 || (project > 1 && elements(query_width, project) > limit)) --project;
  const int head = most(width, 16, 64);
  return {.qkv = columns(qkv_width, products_of_qkv, divides_qkv),
          .up = columns(up_width, products_of_up, divides_inner) / products_of_up,
          .normalizes = normalizes,
          .batch_qkv = batch_qkv,
          .batch_up = batch_up,
          .project = project,
          .down = most(target.inner, 4, 60),
          .head = head,
          .rounds = head < 16 ? 8 : 12,
          .parts = std::clamp(100 * std::max(target.head_width, 1) / query_width, 1, 6)};
}

// A thread has 16 bytes of one key or more, and of their values. The fewer CTAs there are, the more keys each has in
// flight. Many hide each other's latency, and more of them fit on a multiprocessor if they are small.
KeyTiles key_tiles(const TileTarget& target, std::int64_t blocks) {
  const bool is_half = target.operands == ElementType::bf16;
  const int most = (is_half ? 2048 : 1024) / power_at_least(target.head_width);
  const auto tiles = [&](int keys_of_group, int groups, int warps) {
    const int fit = std::clamp(groups, 1, 128);
    return KeyTiles{.keys = keys_of_group * fit, .groups = fit, .warps = warps};
  };
  if (!is_half) return tiles(blocks < 512 ? 2 : 1, most, 0);
  if (blocks < 256) return tiles(4, most, 8);
  if (blocks < 512) return tiles(2, most, 4);
  return tiles(2, most / 2, blocks < 2048 ? 4 : 2);
}
KeyTiles part_key_tiles(const TileTarget& target) {
  KeyTiles tiles = key_tiles(target, 256);
  tiles.warps = 0;
  return tiles;
}

std::string why_no_decode_kernels(const TileTarget& target) {
  if (!target.gpu) return "the device is no GPU";
  if (target.operands == ElementType::f32) return "operands are f32, which no tensor core multiplies";
  // A thread holds a row of each matmul's left operand.
  const auto is_wider = [](std::string_view what, int width, int most) {
    return width > most ? fmt::format("{} are {} wide, and may be {}", what, width, most) : std::string();
  };
  for (const std::string& reason :
       {is_wider("the model's rows", target.width, 2048), is_wider("queries", target.query_width, 2048),
        is_wider("the MLP's rows", target.inner, 16384), is_wider("heads", target.head_width, 256)})
    if (!reason.empty()) return reason;
  // Columns of queries must not cross into keys: a width without a suitable divisor has no tiles.
  const DecodeTiles tiles = decode_tiles(target);
  return tiles.qkv < 4 || tiles.up == 0 ? "no number of columns suits all heads, or all of the MLP" : "";
}

// Few rows leave most of the GPU idle: the more warps share one, the sooner it is normalized. They have equal parts of
// it, in pairs of elements at least.
NormTiles norm_tiles(const TileTarget& target, std::int64_t rows) {
  if (!target.gpu) return {.rows = 1};
  if (rows > 4 * multiprocessors && !target.batch_invariant)
    return {.rows = power_at_most(std::max(1024 / target.width, 1))};
  const int warps = std::clamp(power_at_least(target.width / 256), 1, 8);
  for (const int fewer : {warps, warps / 2})
    if (fewer > 0 && target.width % (64 * fewer) == 0) return {.rows = 1, .warps = fewer};
  return {.rows = 1, .warps = warps, .columns = ceil_div(target.width, 128 * warps) * (128 * warps)};
}

int columns_of_gate(const TileTarget& target, int inner) {
  return std::min(power_at_least(inner), target.gpu ? 2048 : 4096);
}

int copy_rows(const TileTarget& target) {
  return target.gpu ? power_at_most(std::clamp(4096 / target.width, 1, 64)) : 8;
}

}  // namespace tessera::internal
