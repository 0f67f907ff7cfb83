// RMS norm: each row is divided by its root mean square, then scaled (Zhang and Sennrich, 2019).
#include <cmath>

#include "gallery/gallery.hpp"

namespace gallery {

auto rms_norm(int cols) {
  return kernel("rms_norm", [=](In<f32, 2> x, In<f32, 1> weight, Out<f32, 2> y, Scalar<f32> eps) {
    require(x.extent(1) == cols, "rows as wide as the kernel was made for");
    require(weight.extent(0) == cols, "a weight for each column");
    same_extents(x, y);
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, cols});
    store(y, {row, 0}, xs * rsqrt(mean(xs * xs, 1) + eps) * load(weight, {0}, {cols}));
  });
}

const Example rms_norm_example("rms_norm", 2e-6, [](const Device& device) {
  const int rows = 13, cols = 768;
  const auto x = normal_values(rows * cols, 1), weight = normal_values(cols, 2);
  const auto y = device.tensor<f32>({rows, cols});
  launch(device.stream(), rms_norm(cols), tensor_of(device, {rows, cols}, x), tensor_of(device, {cols}, weight), y,
         1e-5);

  std::vector<double> expected;
  for (int row = 0; row < rows; ++row) {
    double squares = 0;
    for (int i = 0; i < cols; ++i) squares += std::pow(x[row * cols + i], 2);
    for (int i = 0; i < cols; ++i) expected.push_back(x[row * cols + i] / std::sqrt(squares / cols + 1e-5) * weight[i]);
  }
  return largest_error(y, expected);
});

}  // namespace gallery
