// Attention rows.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// Causal and full, with heads 64 and 128 wide; and the groups gqa (query heads share key-value heads) and window (of
/// 1024 positions).
std::vector<Row> attention_rows(const RowSettings& settings);

}  // namespace tessera::internal::bench
