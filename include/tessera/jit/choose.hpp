// Tiles for a product, without a search: choose<bf16>(MatmulFamily::plain, {8192, 2304, 768}, device).
#pragma once
#include <cstdint>

#include "tessera/graph/element.hpp"
#include "tessera/jit/device.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

/// y [m,n] = x [m,k] w.
struct MatmulShape {
  std::int64_t m, n, k;
  bool nk = false;  ///< w lies as [n,k], not as [k,n]
};

/// Extents of the tiles: [m,n] of y, and k of the inner axis at a time.
struct MatmulTiles {
  int m, n, k;
  bool operator==(const MatmulTiles&) const = default;
};

/// What a kernel does with the sums before it stores them.
enum class MatmulFamily : std::uint8_t {
  plain,      ///< little: it casts them, or adds a bias
  activated,  ///< dozens of instructions for each: GELU
  residual,   ///< it adds what y was, which comes from memory
};

/// The tiles that a product of such operands (what mma() is given) should have on a device. Of those that are made by wgmma, a
/// model of the GPU's time says which is the fastest; all others follow plain rules.
MatmulTiles choose(MatmulFamily family, const MatmulShape& shape, ElementType operands, const Device& device);
template <Element P>
MatmulTiles choose(MatmulFamily family, const MatmulShape& shape, const Device& device) {
  return choose(family, shape, element_type<P>, device);
}

}  // namespace internal
}  // namespace tessera
