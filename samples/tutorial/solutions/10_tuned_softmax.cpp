// Exercise 10: a softmax whose number of rows per CTA is measured.
#include <chrono>
#include <cmath>
#include <cstdio>

#include <tessera/tune.hpp>
#include "tutorial/solutions/solutions.hpp"

namespace solutions {

// [kernel]
auto softmax_rows(int rows, int width) {
  return kernel("softmax_rows", [=](In<f32, 2> x, Out<f32, 2> y) {
    require(x.extent(1) <= width, "rows no wider than the kernel was made for");
    same_extents(x, y);
    Index i = blocks(cdiv(x.extent(0), rows));
    Tile xs = load(x, {i, 0}, {rows, width}, -inf);
    Tile e = exp(xs - max(xs, 1));
    store(y, {i, 0}, e / sum(e, 1));
  });
}
// [/kernel]

const Solution tuned_softmax_solution(10, "tuned_softmax", [](const Device& device) {
  const int rows = 1000, cols = 256;
  const auto values = normal_values(rows * cols, 1);
  const auto x = device.tensor<f32>({rows, cols}, values), y = device.tensor<f32>({rows, cols});

  // [tune]
  const Tunable family = tunable(softmax_rows, combinations({{1, 2, 4, 8, 16}, {256}}));
  const TuneReport report = tune(device.stream(), family, TuneOptions{.budget = std::chrono::seconds(2)}, x, y);
  std::printf("%s", report.text().c_str());
  launch(device.stream(), family, x, y);
  // [/tune]

  std::vector<double> expected;
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int i = 0; i < cols; ++i) sum += std::exp(double{values[row * cols + i]});
    for (int i = 0; i < cols; ++i) expected.push_back(std::exp(double{values[row * cols + i]}) / sum);
  }
  return agree("10_tuned_softmax", y.to_vector(), expected, 1e-6);
});

}  // namespace solutions
