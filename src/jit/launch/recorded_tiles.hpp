// Tiles of matmuls that tuning recorded, which choose() takes.
#pragma once
#include <optional>

#include "jit/launch/matmul_tiles.hpp"

namespace tessera::internal {

std::optional<MatmulTiles> recorded_tiles(MatmulFamily family, const MatmulShape& shape, ElementType operands,
                                          const MatmulTarget& target);

}  // namespace tessera::internal
