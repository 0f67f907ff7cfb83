#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/attention.hpp"
#include "common/decode.hpp"
#include "common/join.hpp"
#include "common/memory_rows.hpp"
#include "common/products.hpp"

namespace tessera::bench {

std::string Row::name() const {
  return fmt::format("{}{}{}-{}-{}{}{}", group, group.empty() ? "" : "-", op, type, join(shape, "x"),
                     form.empty() ? "" : "-", form);
}

std::vector<Row> rows(const RowSettings& settings) {
  const bool small = settings.small;
  std::vector<Row> rows = memory_rows(small);
  std::ranges::move(product_rows(settings), std::back_inserter(rows));
  std::ranges::move(attention_rows(settings), std::back_inserter(rows));
  rows.push_back(small ? decode(preset("nano"), Compute::bf16, 8) : decode(preset("gpt2"), Compute::bf16, 256));
  std::ranges::stable_partition(rows, [](const Row& row) { return row.group.empty(); });
  return rows;
}

}  // namespace tessera::bench
