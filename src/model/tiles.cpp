#include "model/tiles.hpp"

#include <algorithm>
#include <bit>

namespace tessera {

using kernels::ProductTiles;

namespace {

int power_at_least(int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))); }
int power_at_most(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

// A tile along the inner axis, up to `most`: one that divides the width, if there is one of some size in whole steps.
// (A tile that hangs over is computed in part for nothing.)
int along_inner(int width, int most, int step) {
  const int least = std::max(step, 32);
  for (int k = std::min(width, most) / step * step; k >= least; k -= step)
    if (width % k == 0) return k;
  return std::min(most, std::max(power_at_least(width), step));
}

}  // namespace

int product_rows(const TileTarget& target, std::int64_t rows) {
  // One for a decode step, few for a batch of them, many for a prompt.
  if (rows == 1) return 1;
  if (rows <= 16) return 16;
  // On a GPU smaller tiles are more blocks, which only long prompts have enough of; without tensor cores they lose
  // nothing.
  const bool small = target.gpu ? rows <= 1024 || target.operands == ElementType::f32 : rows <= 64;
  return small ? 64 : 128;
}

ProductTiles linear_tiles(const TileTarget& target, int m) {
  const int n = m == 128 ? 128 : 64;
  if (!target.gpu) return {m, n, along_inner(target.width, 256, 1)};
  const bool narrow = target.operands == ElementType::bf16, tensor_cores = target.operands != ElementType::f32;
  // One row reads all weights once: many narrow blocks, each with as much on its way as its registers hold.
  if (m == 1) return {1, 16, along_inner(target.width, narrow ? 768 : 512, 1)};
  // A few steps of both operands are in shared memory, for two blocks or more.
  return {m, n, along_inner(target.width, narrow ? 64 : tensor_cores || m == 16 ? 32 : 16, 16)};
}

ProductTiles head_tiles(const TileTarget& target, int m) {
  // Rows of the head lie along the inner axis: a few of them are long accesses.
  if (target.gpu && m == 1) return {1, 32, along_inner(target.width, 256, 1)};
  return linear_tiles(target, m);
}

ProductTiles choose(const TileTarget& target, const ProductExtents& extents) {
  const ProductTiles plain = linear_tiles(target, product_rows(target, extents.m));
  if (target.multiprocessors == 0 || target.operands != ElementType::bf16 || extents.m <= 32) return plain;
  // Measured on an H200: the share of the peak that a tile's products reach, and, in cycles, what a tile takes besides.
  struct Candidate {
    ProductTiles tiles;
    double rate, besides;
  };
  constexpr double peak = 4096;  // multiply-adds of a multiprocessor in a cycle
  constexpr Candidate candidates[] = {{{128, 256, 64}, 0.80, 2600}, {{128, 192, 64}, 0.80, 700},
                                      {{128, 128, 64}, 0.75, 600},  {{64, 256, 64}, 0.70, 700},
                                      {{64, 128, 64}, 0.55, 600},   {{64, 64, 64}, 0.35, 600}};
  ProductTiles best = plain;
  double least = 0;
  for (const Candidate& candidate : candidates) {
    const ProductTiles& tiles = candidate.tiles;
    const std::int64_t count = (extents.m + tiles.m - 1) / tiles.m * ((extents.n + tiles.n - 1) / tiles.n);
    const auto waves = static_cast<double>((count + target.multiprocessors - 1) / target.multiprocessors);
    const double products = static_cast<double>(tiles.m) * tiles.n * static_cast<double>(extents.k);
    const double cycles = waves * (products / (peak * candidate.rate) + candidate.besides);
    if (least == 0 || cycles < least) {
      least = cycles;
      best = tiles;
    }
  }
  return best;
}

AttentionTiles attention_tiles(const TileTarget& target) {
  if (!target.gpu) return {32, 64};
  if (target.operands == ElementType::f32) return {64, 32};
  // The result's rows stay in registers, with the scores: the wider they are, the fewer scores at a time.
  if (target.head_width > 128) return {16, 16};
  const int keys = target.operands == ElementType::bf16 ? 64 : 32;
  return {64, target.head_width > 64 ? keys / 2 : keys};
}

int decode_keys(const TileTarget& target) {
  return target.gpu ? std::clamp(8192 / power_at_least(target.head_width), 64, 128) : 64;
}

int norm_rows(const TileTarget& target) { return target.gpu ? power_at_most(std::max(1024 / target.width, 1)) : 1; }

int copy_rows(const TileTarget& target) {
  return target.gpu ? power_at_most(std::clamp(4096 / target.width, 1, 64)) : 8;
}

}  // namespace tessera
