// Rows that sort, count, and scan: elements interact across a line.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// All belong to the group "order".
std::vector<Row> order_rows(bool small);

}  // namespace tessera::internal::bench
