// Rows of products of matrices.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// Those of the table, and the groups: smallm (few rows of x), sweep (random extents), t1 (without wgmma), bytes (of
/// i8), and chosen (each tile that choose() might choose, beside the one it does).
std::vector<Row> matmul_rows(const RowSettings& settings);

}  // namespace tessera::internal::bench
