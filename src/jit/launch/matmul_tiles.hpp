// What choose() goes by: what runs a product, the candidates, and the plain rules.
#pragma once
#include <optional>
#include <vector>

#include "codegen/schedule/split_k.hpp"
#include "codegen/target/target.hpp"
#include "tessera/jit/choose.hpp"

namespace tessera::internal {

/// What runs a product.
struct MatmulTarget {
  std::optional<Target> gpu = {};  ///< none: a CPU
  int multiprocessors = 0;         ///< of the GPU
  SplitKPolicy split_k = SplitKPolicy::automatic;

  /// Has it the matrix units of sm_90a, and are they used?
  bool has_wgmma() const { return gpu && gpu->tier == Target::Tier::wgmma; }
};
/// A device, and what TESSERA_TENSOR_CORES and TESSERA_SPLIT_K make of it.
[[gnu::visibility("default")]] MatmulTarget matmul_target(const Device& device);  // for tessera::model, too

/// As choose() of a device, for what runs the product.
MatmulTiles choose(MatmulFamily family, const MatmulShape& shape, ElementType operands, const MatmulTarget& target);

/// The plain rules, for a CPU and for what every GPU has: rows of a tile, which take few values, and the tile of so
/// many rows.
int rule_rows(std::int64_t rows, ElementType operands, bool gpu);
MatmulTiles rule_tiles(int m, const MatmulShape& shape, ElementType operands, bool gpu);

/// All that choose() chooses from where it asks the model: of products of f16, bf16 or tf32.
std::vector<MatmulTiles> wgmma_tiles(ElementType operands = ElementType::bf16);

}  // namespace tessera::internal
