// Tile sizes for a matmul: choose<bf16>(MatmulFamily::plain, {8192, 2304, 768}, device).
#pragma once
#include <compare>
#include <cstdint>
#include <vector>

#include "tessera/graph/element.hpp"
#include "tessera/jit/device.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// The extents of y [m,n] = x [m,k] w.
struct MatmulShape {
  std::int64_t m, n, k;
  bool nk = false;          ///< w is stored as [n,k], not as [k,n]
  bool computes_w = false;  ///< the kernel computes the tiles of w, as it does if it dequantizes them
  bool computes_x = false;  ///< the same of x
};

/// Extents of the tiles: [m,n] of y, and k per k-iteration.
struct MatmulTiles {
  int m, n, k;
  auto operator<=>(const MatmulTiles&) const = default;
};

/// Positions of queries and of keys in one tile of the scores of attention.
struct AttentionTiles {
  int queries, keys;
  int blocks = 0;  ///< CTAs per multiprocessor; 0: as many as the compiler chooses
  bool operator==(const AttentionTiles&) const = default;
};

/// The work of a kernel on the accumulators before it stores them.
enum class MatmulFamily : std::uint8_t {
  plain,      ///< little: it casts them, or adds a bias
  activated,  ///< dozens of instructions for each: GELU
  residual,   ///< adds the old y, which is read from memory
};

/// The tile sizes that a matmul of such operands (the type passed to mma()) should have on a device: those that tuning
/// recorded (api/tune_matmul.hpp), unless TESSERA_TUNE=off. Without a record, a model of the GPU's time selects the
/// fastest for matmuls that use wgmma; all others follow simple rules.
MatmulTiles choose(MatmulFamily family, const MatmulShape& shape, ElementType operands, const Device& device);
template <Element P>
MatmulTiles choose(MatmulFamily family, const MatmulShape& shape, const Device& device) {
  return choose(family, shape, element_type<P>, device);
}

/// Tile sizes that are worth a measurement: in the order of the predicted times, so that the first are what choose()
/// selects without a record, and then those that the model knows nothing about.
std::vector<MatmulTiles> matmul_candidates(MatmulFamily family, const MatmulShape& shape, ElementType operands,
                                           const Device& device);
template <Element P>
std::vector<MatmulTiles> matmul_candidates(MatmulFamily family, const MatmulShape& shape, const Device& device) {
  return matmul_candidates(family, shape, element_type<P>, device);
}

}  // namespace internal
}  // namespace tessera
