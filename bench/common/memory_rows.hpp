// Rows bound by memory: element by element, row by row, transposed, added up, times a vector.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// Those of every run, and behind them the group "rows".
std::vector<Row> memory_rows(bool small);

}  // namespace tessera::internal::bench
