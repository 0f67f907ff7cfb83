#include "model/tiles.hpp"

#include <algorithm>
#include <bit>

namespace tessera {

using kernels::ProductTiles;

namespace {

// The largest divisor of the width up to `most`: a tile that hangs over is computed in vain. `most` itself, if the
// width has no such divisor of at least `least` and in steps of `step`.
int along_inner(int width, int most, int least, int step) {
  for (int k = std::min(width, most) / step * step; k >= least; k -= step)
    if (width % k == 0) return k;
  return most;
}

bool narrow(const TileTarget& target) { return target.operands == ElementType::bf16; }

// So many rows at a time: one for a decode step, few for a batch of them, many for a prompt.
int cpu_rows(std::int64_t rows) { return rows == 1 ? 1 : rows <= 16 ? 16 : rows <= 64 ? 64 : 128; }

// Tiles of 128 rows read the least, and are enough for all multiprocessors in long prompts only.
int gpu_rows(std::int64_t rows) { return rows == 1 ? 1 : rows <= 16 ? 16 : rows <= 1024 ? 64 : 128; }

ProductTiles cpu_product(const TileTarget& target, std::int64_t rows) {
  const int m = cpu_rows(rows);
  return {m, m == 128 ? 128 : 64, along_inner(target.width, 256, 32, 1)};
}

// More than one row, on a GPU: a block's operands for two or three steps of k fit in shared memory.
ProductTiles gpu_product(const TileTarget& target, int m) {
  return {m, m == 128 ? 128 : 64, along_inner(target.width, narrow(target) ? 64 : 32, 16, 16)};
}

}  // namespace

ProductTiles linear_tiles(const TileTarget& target, std::int64_t rows) {
  if (!target.gpu) return cpu_product(target, rows);
  const int m = gpu_rows(rows);
  if (m > 1) return gpu_product(target, m);
  // One row reads all weights once: many narrow blocks, each with much of its columns on the way at once.
  return {1, 16, along_inner(target.width, narrow(target) ? 768 : 512, 32, 1)};
}

ProductTiles head_tiles(const TileTarget& target, std::int64_t rows) {
  if (!target.gpu) return cpu_product(target, rows);
  const int m = gpu_rows(rows);
  if (m > 1) return gpu_product(target, m);
  return {1, 32, along_inner(target.width, 256, 32, 1)};  // rows of the head lie along k
}

AttentionTiles attention_tiles(const TileTarget& target) {
  if (!target.gpu) return {32, 64};
  return {64, 64};
}

int decode_tile(const TileTarget& target) {
  if (!target.gpu) return 64;
  return std::clamp(8192 / static_cast<int>(std::bit_ceil(static_cast<unsigned>(target.head_width))), 32, 128);
}

int norm_rows(const TileTarget& target) { return target.gpu ? std::max(1024 / target.width, 1) : 1; }
int copy_rows(const TileTarget& target) { return target.gpu ? std::clamp(4096 / target.width, 1, 64) : 8; }

}  // namespace tessera
