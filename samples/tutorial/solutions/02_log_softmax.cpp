// Exercise 2: the logarithm of the softmax, four rows per CTA. Rows of the last CTA that are beyond the matrix are
// padding alone: -inf - -inf is NaN, but store drops these rows, and no other row depends on them.
#include <algorithm>
#include <cmath>

#include "tutorial/solutions/solutions.hpp"

namespace solutions {

// [kernel]
auto log_softmax(int rows, int width) {
  return kernel("log_softmax", [=](In<f32, 2> x, Out<f32, 2> y) {
    require(x.extent(1) <= width, "rows no wider than the kernel was made for");
    same_extents(x, y);
    Index i = blocks(cdiv(x.extent(0), rows));
    Tile xs = load(x, {i, 0}, {rows, width}, -inf);
    Tile shifted = xs - max(xs, 1);
    store(y, {i, 0}, shifted - log(sum(exp(shifted), 1)));
  });
}
// [/kernel]

const Solution log_softmax_solution(2, "log_softmax", [](const Device& device) {
  const int rows = 13, cols = 1000;
  const auto x = normal_values(rows * cols, 1);
  const auto y = device.tensor<f32>({rows, cols});
  launch(device.stream(), log_softmax(4, 1024), device.tensor<f32>({rows, cols}, x), y);

  std::vector<double> expected;
  for (int row = 0; row < rows; ++row) {
    double largest = x[row * cols], sum = 0;
    for (int i = 0; i < cols; ++i) largest = std::max(largest, double{x[row * cols + i]});
    for (int i = 0; i < cols; ++i) sum += std::exp(x[row * cols + i] - largest);
    for (int i = 0; i < cols; ++i) expected.push_back(x[row * cols + i] - largest - std::log(sum));
  }
  return agree("02_log_softmax", y.to_vector(), expected, 1e-6);
});

}  // namespace solutions
