// Rows of matmuls whose left operand is computed in the kernel.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// y [m,n] in bf16 = x [m,k] w, where x is f32: converted to bf16, or its layer norm.
Row linear_cast(const MatmulShape& shape, std::optional<MatmulTiles> tiles);
Row linear_norm(const MatmulShape& shape, std::optional<MatmulTiles> tiles);

}  // namespace tessera::internal::bench
