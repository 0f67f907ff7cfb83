// Exercise 3: RMS norm by one kernel for rows of any width up to that of its tile.
#include <cmath>

#include "tutorial/solutions/solutions.hpp"

namespace solutions {

// [kernel]
auto rms_norm(int width) {
  return kernel("rms_norm", [=](In<f32, 2> x, In<f32, 1> weight, Out<f32, 2> y, Scalar<f32> eps) {
    require(x.extent(1) <= width, "rows no wider than the kernel was made for");
    require(weight.extent(0) == x.extent(1), "a weight for each column");
    same_extents(x, y);
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, width});
    Tile mean_square = sum(xs * xs, 1) / cast<f32>(x.extent(1));  // not mean(): that counts the padding, too
    store(y, {row, 0}, xs * rsqrt(mean_square + eps) * load(weight, {0}, {width}));
  });
}
// [/kernel]

const Solution rms_norm_solution(3, "rms_norm", [](const Device& device) {
  const auto norm = rms_norm(1024);
  const double eps = 1e-5;
  bool right = true;
  for (const int cols : {1, 100, 768, 1024}) {
    const int rows = 5;
    const auto x = normal_values(rows * cols, 1), weight = normal_values(cols, 2);
    const auto y = device.tensor<f32>({rows, cols});
    launch(device.stream(), norm, device.tensor<f32>({rows, cols}, x), device.tensor<f32>({cols}, weight), y, eps);

    std::vector<double> expected;
    for (int row = 0; row < rows; ++row) {
      double squares = 0;
      for (int i = 0; i < cols; ++i) squares += double{x[row * cols + i]} * x[row * cols + i];
      for (int i = 0; i < cols; ++i)
        expected.push_back(x[row * cols + i] / std::sqrt(squares / cols + eps) * weight[i]);
    }
    right &= agree("03_rms_norm", y.to_vector(), expected, 2e-6);
  }
  return right;
});

}  // namespace solutions
