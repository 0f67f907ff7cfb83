#include <algorithm>
#include <iterator>

#include "common/attention.hpp"
#include "common/decode.hpp"
#include "common/gather_rows.hpp"
#include "common/matmuls.hpp"
#include "common/memory_rows.hpp"
#include "common/order_rows.hpp"

namespace tessera::internal::bench {

std::vector<Row> rows(const RowSettings& settings) {
  const bool small = settings.small;
  std::vector<Row> rows = memory_rows(small);
  std::ranges::move(order_rows(small), std::back_inserter(rows));
  std::ranges::move(gather_rows(small), std::back_inserter(rows));
  std::ranges::move(matmul_rows(settings), std::back_inserter(rows));
  std::ranges::move(attention_rows(settings), std::back_inserter(rows));
  const Gpt2Config config = preset(small ? "nano" : "gpt2");
  rows.push_back(decode(config, Compute::bf16, small ? 8 : 256));
  rows.push_back(small ? prefill(config, Compute::bf16, 2, 16) : prefill(config, Compute::bf16, 8, 1024));
  std::ranges::stable_partition(rows, [](const Row& row) { return row.group.empty(); });
  return rows;
}

}  // namespace tessera::internal::bench
