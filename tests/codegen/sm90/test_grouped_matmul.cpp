// Grouped matmuls by wgmma: the tile coordinates of an operand depend on numbers in memory, which each role loads. On
// any device and in the emulator compared with exact sums; plans.
#include <random>

#include "common/grouped_products.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/emulating.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/tensors.hpp"

namespace test_grouped_matmul {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

/// Small integers: sums of their products are exact in bf16.
std::vector<bf16> integers(std::int64_t count, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<bf16> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(bf16(static_cast<float>(static_cast<int>(rng() % 3) - 1)));
  return values;
}

struct Sizes {
  int n, k;
};

/// Empty, or the first element of y that is not the sum of x times the matrix of the row's expert; rows of expert -1
/// are not written.
std::string difference(const std::vector<bf16>& y, const std::vector<bf16>& x, const std::vector<bf16>& w,
                       const std::vector<int>& expert_of_row, const Sizes& of, float unwritten) {
  const auto at = [](const std::vector<bf16>& values, std::size_t i) { return static_cast<float>(values[i]); };
  const auto n = static_cast<std::size_t>(of.n), k = static_cast<std::size_t>(of.k);
  for (std::size_t row = 0; row < expert_of_row.size(); ++row)
    for (std::size_t column = 0; column < n; ++column) {
      const auto expert = static_cast<std::size_t>(expert_of_row[row]);
      float sum = expert_of_row[row] < 0 ? unwritten : 0;
      for (std::size_t i = 0; expert_of_row[row] >= 0 && i < k; ++i)
        sum += at(x, row * k + i) * at(w, (expert * k + i) * n + column);
      if (at(y, row * n + column) != sum)
        return fmt::format("[{},{}] is {}, not {}", row, column, at(y, row * n + column), sum);
    }
  return {};
}

}  // namespace

TEST_CASE("grouped matmul: an expert for each tile of rows", "[cpu]") {
  Cases cases(4);
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 64}, {128, 128, 64}, {128, 256, 64}, {256, 128, 64}}) {
    if (cases.skip()) continue;
    INFO(fmt::format("tiles of [{},{}] by {}", tiles.m, tiles.n, tiles.k));
    const Sizes of{tiles.n + 24, 2 * tiles.k + 16};
    const std::vector<i32> experts{2, 0, 0, 1, 2};
    const int rows = tiles.m * 5 - 8;
    const auto k = kernels::grouped_mm(tiles);
    const Plan plan = plan_with(k.graph());
    INFO(why_not(plan));
    CHECK(has_roles(plan));
    CHECK(count<TmaStore>(plan) > 0);
    const std::vector<bf16> x = integers(rows * of.k, 1), w = integers(3 * of.k * of.n, 2);
    const auto y = tensor<bf16, 2>({rows, of.n}, std::vector<bf16>(static_cast<std::size_t>(rows * of.n), bf16(99)));
    launch(test_device().stream(), k, tensor<bf16, 2>({rows, of.k}, x), tensor<bf16, 3>({3, of.k, of.n}, w),
           tensor<i32, 1>({5}, experts), y);
    std::vector<int> expert_of_row;
    for (int row = 0; row < rows; ++row) expert_of_row.push_back(experts[static_cast<std::size_t>(row / tiles.m)]);
    CHECK(difference(y.to_vector(), x, w, expert_of_row, of, 99) == "");
  }
}

TEST_CASE("grouped matmul: experts with any numbers of rows", "[cpu]") {
  Cases cases(3);
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 64}, {128, 128, 64}, {128, 256, 64}}) {
    if (cases.skip()) continue;
    INFO(fmt::format("tiles of [{},{}] by {}", tiles.m, tiles.n, tiles.k));
    const Sizes of{tiles.n + 24, 2 * tiles.k + 16};
    // No rows before the first expert, none of the second, and rows behind the last one's.
    const std::vector<i32> starts{3, 3 + tiles.m + 5, 3 + tiles.m + 5, 4 + tiles.m + 5};
    const int rows = starts.back() + 9;
    const auto k = kernels::grouped_mm_any(tiles);
    const Plan plan = plan_with(k.graph());
    INFO(why_not(plan));
    CHECK(has_roles(plan));
    const std::vector<bf16> x = integers(rows * of.k, 3), w = integers(3 * of.k * of.n, 4);
    const auto y = tensor<bf16, 2>({rows, of.n}, std::vector<bf16>(static_cast<std::size_t>(rows * of.n), bf16(99)));
    launch(test_device().stream(), k, tensor<bf16, 2>({rows, of.k}, x), tensor<bf16, 3>({3, of.k, of.n}, w),
           tensor<i32, 1>({4}, starts), tiles.m + 5, y);
    std::vector<int> expert_of_row(static_cast<std::size_t>(rows), -1);
    for (int expert = 0; expert < 3; ++expert)
      for (int row = starts[static_cast<std::size_t>(expert)]; row < starts[static_cast<std::size_t>(expert) + 1];
           ++row)
        expert_of_row[static_cast<std::size_t>(row)] = expert;
    CHECK(difference(y.to_vector(), x, w, expert_of_row, of, 99) == "");
  }
}

TEST_CASE("grouped matmul: experts are known to the producer, and are no weights to prefetch", "[plan]") {
  const Plan plan = plan_with(kernels::grouped_mm({128, 128, 64}).graph());
  INFO(tree_text(plan));
  REQUIRE(has_roles(plan));
  CHECK(count<PrefetchBeforeWait>(plan) == 0);
  CHECK(count<TmaLoad>(plan) == 3);  // a panel of x, and two of w
  // The expert may come from a tensor of the same launch only if the launch does not write it.
  const auto written = kernel("written", [](In<bf16, 2> x, In<bf16, 3> w, InOut<i32, 1> experts, Out<bf16, 2> y) {
    auto [m, n] = blocks(cdiv(x.extent(0), 64), cdiv(w.extent(2), 64));
    Tile of_tile = load(experts, {m}, {1});
    Index expert = item(of_tile);
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64)))
      acc = mma(load(x, {m, k}, {64, 64}), squeeze(load(w, {expert, k, n}, {1, 64, 64}), 0), acc);
    store(y, {m, n}, cast<bf16>(acc));
    store(experts, {m}, zeros<i32>({1}));
  });
  CHECK(why_not(plan_with(written.graph())) == "the tile coordinates of parameter 2 depend on computed values");
}

}  // namespace test_grouped_matmul
