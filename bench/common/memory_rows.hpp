// Memory-bound rows: elementwise, row by row, transposed, reduced, times a vector.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// The rows of every run, followed by the group "rows".
std::vector<Row> memory_rows(bool small);

}  // namespace tessera::internal::bench
