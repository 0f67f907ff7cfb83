// Exercise 4: a linear layer whose weights are stored as PyTorch stores them, w [n,k], with a ReLU.
#include <algorithm>
#include <cmath>

#include "tutorial/solutions/solutions.hpp"

namespace solutions {

// [kernel]
auto linear_relu(int bm, int bn, int bk) {
  return kernel("linear_relu", [=](In<f32, 2> x, In<f32, 2> w, In<f32, 1> bias, Out<f32, 2> y) {
    require(x.extent(1) == w.extent(1), "inner extents agree");
    require((y.extent(0) == x.extent(0)) & (y.extent(1) == w.extent(0)),
            "a row of y for each of x, a column for each row of w");
    require(bias.extent(0) == w.extent(0), "a bias for each column");
    auto [m, n] = blocks(cdiv(y.extent(0), bm), cdiv(y.extent(1), bn));
    Var acc = zeros<f32>({bm, bn});
    for (Index k : range(cdiv(x.extent(1), bk)))
      acc = mma(load(x, {m, k}, {bm, bk}), transpose(load(w, {n, k}, {bn, bk})), acc);
    store(y, {m, n}, maximum(acc + load(bias, {n}, {bn}), 0));
  });
}
// [/kernel]

const Solution linear_relu_solution(4, "linear_relu", [](const Device& device) {
  const int m = 70, n = 90, k = 110;
  const auto x = normal_values(m * k, 1), w = normal_values(n * k, 2), bias = normal_values(n, 3);
  const auto y = device.tensor<f32>({m, n});
  launch(device.stream(), linear_relu(64, 64, 32), device.tensor<f32>({m, k}, x), device.tensor<f32>({n, k}, w),
         device.tensor<f32>({n}, bias), y);

  std::vector<double> expected;
  for (int row = 0; row < m; ++row)
    for (int col = 0; col < n; ++col) {
      double sum = bias[col];
      for (int i = 0; i < k; ++i) sum += double{x[row * k + i]} * w[col * k + i];
      expected.push_back(std::max(sum, 0.0));
    }
  return agree("04_linear_relu", y.to_vector(), expected, 1e-5);
});

}  // namespace solutions
