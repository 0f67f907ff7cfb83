// Rows in which elements meet across a line: sorted, counted, added up one after another.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// All are of the group "order".
std::vector<Row> order_rows(bool small);

}  // namespace tessera::internal::bench
