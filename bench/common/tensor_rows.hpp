// Rows of tensor programs, each in three sizes: what fusion gains over another framework's compiler.
#pragma once
#include <vector>

#include "common/row.hpp"

namespace tessera::internal::bench {

/// The programs, in group "tensors": from launch-bound to bound by the device.
std::vector<Row> tensor_rows(bool small);

}  // namespace tessera::internal::bench
