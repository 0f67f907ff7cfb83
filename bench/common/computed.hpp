// Rows of matmuls of which one operand is computed in the kernel.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// y [m,n] in bf16 = x [m,k] w, where x is f32: converted to bf16, or its layer norm.
Row linear_cast(const MatmulShape& shape, std::optional<MatmulTiles> tiles);
Row linear_norm(const MatmulShape& shape, std::optional<MatmulTiles> tiles);
/// y [m,n] in bf16 = x [m,k] (w scale), where x is bf16, w is i8 [k,n], or [n,k] if `nk`, and scale is f32 [n].
Row linear_i8(const MatmulShape& shape, std::optional<MatmulTiles> tiles);
/// The same of 4-bit numbers, two along k in each byte of [k / 2,n], and a scale for each 64 along k.
Row linear_i4(const MatmulShape& shape, std::optional<MatmulTiles> tiles);

}  // namespace tessera::internal::bench
