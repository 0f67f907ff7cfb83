// Matmul rows.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// The rows of the table, and the groups: smallm (few rows of x), unaligned (rows of w at odd
/// multiples of 16 bytes), sweep (random extents), t1 (without wgmma), bytes (of
/// i8), chosen (each tile that choose() might choose, against the one it does choose), and tiles (all of
/// them for 200 random extents, from which scripts/fit fits the cost model).
std::vector<Row> matmul_rows(const RowSettings& settings);

/// Random extents, log-uniform multiples of 8 from `least` to `most`, of at most `operations`.
std::vector<MatmulShape> random_shapes(std::uint64_t seed, std::size_t count, int least, int most,
                                       double operations = 2e12);

}  // namespace tessera::internal::bench
