// Tiles of attention with the online softmax, by plain rules for each kind of device.
#pragma once
#include <cstdint>

#include "jit/launch/matmul_tiles.hpp"

namespace tessera::internal {

struct AttentionShape {
  ElementType operands{};  ///< of the products
  int head_width = 0;
  std::int64_t seen = 1024;  ///< mean number of keys that a query sees
  bool one_order = false;    ///< do tiles of all lengths add up keys in one order?
  bool computes = false;     ///< are scores changed by a mask or a bias, which take registers beside them?
  /// The queries of a launch, the heads of all its sequences, and the multiprocessors of its GPU; 0: not known.
  std::int64_t queries = 0, heads = 0;
  int multiprocessors = 0;
};

/// Does attention of such heads use wgmma, on a GPU that has it?
[[gnu::visibility("default")]] bool has_fused_attention(const AttentionShape& shape);
[[gnu::visibility("default")]] AttentionTiles attention_tiles(const AttentionShape& shape, bool gpu, bool wgmma);

}  // namespace tessera::internal
