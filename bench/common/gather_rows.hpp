// Rows whose kernels address elements one by one, measured on the CPU against plain loops on one core.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// All belong to the group "gather" and have a loop.
std::vector<Row> gather_rows(bool small);

}  // namespace tessera::internal::bench
