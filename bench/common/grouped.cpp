#include "common/grouped.hpp"

#include "common/grouped_products.hpp"
#include "common/typed.hpp"

namespace tessera::internal::bench {
namespace {

/// The expert of each of so many equal parts of the rows: 1 to 8 parts for each of 8.
std::vector<i32> experts_of_parts(std::int64_t experts) {
  std::vector<i32> parts;
  for (i32 expert = 0; expert < experts; ++expert)
    parts.insert(parts.end(), static_cast<std::size_t>(expert * 5 % 8 + 1), expert);
  return parts;
}

}  // namespace

Row grouped_mm(const MatmulShape& e, std::int64_t experts, std::optional<MatmulTiles> tiles) {
  const auto real = [](auto value) { return static_cast<double>(value); };
  Row row{.op = "grouped_mm",
          .type = "bf16",
          .shape = {e.m, e.n, e.k, experts},
          .details = std::vector<std::int64_t>(static_cast<std::size_t>(experts)),
          .resource = Resource::bf16,
          .work = 2 * real(e.m) * real(e.n) * real(e.k),
          .bytes = 2 * real(e.m * e.k + experts * e.k * e.n + e.m * e.n),
          .allowed = allowed<bf16>,
          .tiled = true};
  const std::vector<i32> parts = experts_of_parts(experts);
  const std::int64_t rows_of_part = e.m / std::ssize(parts);
  for (const i32 expert : parts) row.details[static_cast<std::size_t>(expert)] += rows_of_part;
  row.make = [=](const Device& device, const Turns& turns) {
    const MatmulTiles chosen = tiles ? *tiles : choose<bf16>(MatmulFamily::plain, e, device);
    std::vector<i32> expert_of_tile;
    for (std::int64_t first = 0; first < e.m; first += chosen.m)
      expert_of_tile.push_back(parts[static_cast<std::size_t>(first / rows_of_part)]);
    const Normal left(1), right(2, static_cast<float>(1 / std::sqrt(real(e.k))));
    const auto x = operands<bf16, 2>(device, turns, {e.m, e.k}, left);
    const auto w = operands<bf16, 3>(device, turns, {experts, e.k, e.n}, right);
    const auto y = results<bf16, 2>(device, turns, {e.m, e.n});
    const auto reference = [=](std::int64_t index) {
      const std::int64_t expert = parts[static_cast<std::size_t>(index / e.n / rows_of_part)];
      double sum = 0;
      for (std::int64_t k = 0; k < e.k; ++k)
        sum += real(static_cast<float>(bf16(left[index / e.n * e.k + k]))) *
               static_cast<float>(bf16(right[(expert * e.k + k) * e.n + index % e.n]));
      return sum;
    };
    const Tensor<i32, 1> of_tile(device, {std::ssize(expert_of_tile)});
    of_tile.copy_from(expert_of_tile);
    return std::make_unique<Captured>(
        device, turns,
        [=, kernel = kernels::grouped_mm(chosen)](const Stream& stream, int i) {
      launch(stream, kernel, x[i], w[i], of_tile, y[i]);
        },
        [=] { return error_of(y.back(), reference); });
  };
  return row;
}

}  // namespace tessera::internal::bench
