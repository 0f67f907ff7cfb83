// Exercise 8: a reduction with a function of your own. The logarithm of the sum of e^x along a row.
#include <cmath>
#include <limits>

#include "tutorial/solutions/solutions.hpp"

namespace solutions {

// [kernel]
auto log_sum_exp(int width) {
  return kernel("log_sum_exp", [=](In<f32, 2> x, Out<f32, 2> y) {
    require(x.extent(1) <= width, "rows no wider than the kernel was made for");
    require((y.extent(0) == x.extent(0)) & (y.extent(1) == 1), "a result for each row");
    const auto both = [](const auto& u, const auto& v) {
      Tile a = u, b = v, high = maximum(a, b);
      return high + log1p(exp(minimum(a, b) - high));
    };
    constexpr f32 lowest = std::numeric_limits<f32>::lowest();  // not -inf: -inf - -inf is NaN
    Index row = blocks(x.extent(0));
    store(y, {row, 0}, reduce(load(x, {row, 0}, {1, width}, lowest), 1, both, lowest));
  });
}
// [/kernel]

const Solution log_sum_exp_solution(8, "log_sum_exp", [](const Device& device) {
  const int rows = 7, cols = 100;
  const auto x = normal_values(rows * cols, 1, 40);  // e^x would overflow
  const auto y = device.tensor<f32>({rows, 1});
  launch(device.stream(), log_sum_exp(128), device.tensor<f32>({rows, cols}, x), y);

  std::vector<double> expected;
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int i = 0; i < cols; ++i) sum += std::exp(double{x[row * cols + i]});
    expected.push_back(std::log(sum));
  }
  return agree("08_log_sum_exp", y.to_vector(), expected, 1e-6);
});

}  // namespace solutions
