#include <algorithm>
#include <iterator>

#include "common/attention.hpp"
#include "common/gather_rows.hpp"
#include "common/matmuls.hpp"
#include "common/memory_rows.hpp"
#include "common/model_rows.hpp"
#include "common/order_rows.hpp"
#include "common/tensor_rows.hpp"

namespace tessera::internal::bench {

std::vector<Row> rows(const RowSettings& settings) {
  const bool small = settings.small;
  std::vector<Row> rows = memory_rows(small);
  std::ranges::move(order_rows(small), std::back_inserter(rows));
  std::ranges::move(gather_rows(small), std::back_inserter(rows));
  std::ranges::move(matmul_rows(settings), std::back_inserter(rows));
  std::ranges::move(attention_rows(settings), std::back_inserter(rows));
  std::ranges::move(model_rows(small), std::back_inserter(rows));
  std::ranges::move(tensor_rows(small), std::back_inserter(rows));
  std::ranges::stable_partition(rows, [](const Row& row) { return row.group.empty(); });
  return rows;
}

}  // namespace tessera::internal::bench
