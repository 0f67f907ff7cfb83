// Rows of products whose left operand is computed on the way.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// y [m,n] in bf16 = x [m,k] w, x being f32: rounded to bf16, or its layer norm.
Row linear_cast(const MatmulShape& shape, std::optional<MatmulTiles> tiles);
Row linear_norm(const MatmulShape& shape, std::optional<MatmulTiles> tiles);

}  // namespace tessera::internal::bench
