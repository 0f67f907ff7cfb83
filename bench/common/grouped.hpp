// Rows of grouped matmuls.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// y [m,n] = x [m,k] times a matrix of w [experts,k,n] for each row, all bf16. The experts have 1/36 to 8/36 of the
/// rows.
Row grouped_mm(const MatmulShape& shape, std::int64_t experts, std::optional<MatmulTiles> tiles);

}  // namespace tessera::internal::bench
