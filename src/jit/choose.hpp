// Tiles for a product, without a search: choose<bf16>(ProductFamily::plain, {8192, 2304, 768}, device).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/sharing.hpp"
#include "codegen/target.hpp"
#include "graph/element.hpp"
#include "jit/device.hpp"

namespace tessera {

/// y [m,n] = x [m,k] w.
struct ProductShape {
  std::int64_t m, n, k;
  bool nk = false;  ///< w lies as [n,k], not as [k,n]
};

/// Extents of the tiles: [m,n] of y, and k of the inner axis at a time.
struct ProductTiles {
  int m, n, k;
  bool operator==(const ProductTiles&) const = default;
};

/// What a kernel does with the sums before it stores them.
enum class ProductFamily : std::uint8_t {
  plain,      ///< little: it casts them, or adds a bias
  activated,  ///< dozens of instructions for each: GELU
  residual,   ///< it adds what y was, which comes from memory
};

/// What runs a product.
struct ProductTarget {
  std::optional<Target> gpu = {};  ///< none: a CPU
  int multiprocessors = 0;         ///< of the GPU
  SharingPolicy sharing = SharingPolicy::automatic;

  /// Has it the matrix units of sm_90a, and are they used?
  bool has_wgmma() const { return gpu && gpu->tier == Target::Tier::wgmma; }
};
/// A device, and what TESSERA_TIER and TESSERA_SHARING make of it.
ProductTarget product_target(const Device& device);

/// The tiles that a product of such operands (what mma() is given) should have. Of those that are made by wgmma, a
/// model of the GPU's time says which is the fastest; all others follow plain rules.
ProductTiles choose(ProductFamily family, const ProductShape& shape, ElementType operands, const ProductTarget& target);
template <Element P>
ProductTiles choose(ProductFamily family, const ProductShape& shape, const Device& device) {
  return choose(family, shape, element_type<P>, product_target(device));
}

/// The plain rules, for a CPU and for what every GPU has: rows of a tile, which take few values, and the tile of so
/// many rows.
int rule_rows(std::int64_t rows, ElementType operands, bool gpu);
ProductTiles rule_tiles(int m, const ProductShape& shape, ElementType operands, bool gpu);

/// All that choose() chooses from where it asks the model: of products of f16, bf16 or tf32.
std::vector<ProductTiles> wgmma_tiles(ElementType operands = ElementType::bf16);

}  // namespace tessera
