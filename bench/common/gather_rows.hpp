// Rows whose kernels reach elements one by one, measured on the CPU beside plain loops on one core.
#pragma once
#include "common/row.hpp"

namespace tessera::internal::bench {

/// All are of the group "gather", and have a loop.
std::vector<Row> gather_rows(bool small);

}  // namespace tessera::internal::bench
