// Rows of attention.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// Causal and full, of heads 64 and 128 wide; and the groups gqa (queries share the heads of keys and values) and
/// window (of 1024 positions).
std::vector<Row> attention_rows(const RowSettings& settings);

}  // namespace tessera::internal::bench
