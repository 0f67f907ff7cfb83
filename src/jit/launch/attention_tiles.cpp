#include "jit/launch/attention_tiles.hpp"

namespace tessera::internal {

bool has_fused_attention(const AttentionShape& shape) {
  const bool is_half = shape.operands == ElementType::f16 || shape.operands == ElementType::bf16;
  return is_half && shape.head_width <= 128 && shape.head_width % 64 == 0;
}

namespace {

/// Are there so few CTAs of these tiles that many multiprocessors are idle, in a first wave or in a second one? Small
/// tiles of wide heads are so much slower that they must still fit into one wave.
bool leaves_idle(const AttentionShape& shape, const AttentionTiles& tiles) {
  const std::int64_t ctas = shape.heads * ((shape.queries + tiles.queries - 1) / tiles.queries);
  if (shape.queries == 0) return false;
  return shape.head_width == 64 ? 2 * ctas < 3 * shape.multiprocessors : 2 * ctas <= shape.multiprocessors;
}

}  // namespace

AttentionTiles attention_tiles(const AttentionShape& shape, bool gpu, bool wgmma) {
  const bool is_fused = wgmma && has_fused_attention(shape);
  if (!gpu) return {32, 64};
  // Wider than the registers hold: the rest of a tile is in memory, and fewer rows keep it small.
  if (shape.head_width > 512) return {16, 8};
  if (shape.head_width > 256) return {16, 16};
  if (shape.operands == ElementType::f32) return {64, 32};
  // Small tiles waste little of the last keys, and of those that a causal mask hides; several CTAs of a multiprocessor
  // hide each other's latency. A step of a batch-invariant model has the same tiles of keys.
  if (is_fused && shape.head_width == 64 && (shape.seen < 1024 || shape.one_order))
    return {.queries = 64, .keys = 96, .blocks = 3};
  if (is_fused && shape.one_order) return {128, 64};
  // A warp group has 64 rows. With 128 columns of the result, registers hold 160 scores for two groups; with 64
  // columns, those of three groups. On an H200, large tiles pay off if there are many iterations.
  if (is_fused && shape.computes) return shape.head_width == 64 ? AttentionTiles{192, 64} : AttentionTiles{128, 64};
  if (is_fused) {
    const AttentionTiles tiles =
        shape.head_width == 64 ? AttentionTiles{192, 128} : AttentionTiles{128, shape.seen < 2048 ? 128 : 160};
    if (!leaves_idle(shape, tiles)) return tiles;
    return shape.head_width == 64 ? AttentionTiles{.queries = 64, .keys = 128, .blocks = 2} : AttentionTiles{64, 64};
  }
  // Rows of the result stay in registers together with the scores: the wider they are, the fewer scores fit.
  if (shape.head_width > 128) return {16, 16};
  const int keys = shape.operands == ElementType::bf16 ? 64 : 32;
  return {64, shape.head_width > 64 ? keys / 2 : keys};
}

}  // namespace tessera::internal
