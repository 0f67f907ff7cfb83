// Layer norm and its gradient. The forward kernel stores the mean and 1 / deviation of each row. The backward kernel
// computes the gradient of the rows; the gradients of weight and bias are sums over all rows, so each CTA sums over its
// own rows and adds the result with atomics.
#include <algorithm>
#include <cmath>

#include "gallery/gallery.hpp"

namespace gallery {

auto layer_norm_forward(int cols, double eps) {
  return kernel("layer_norm_forward", [=](In<f32, 2> x, In<f32, 1> weight, In<f32, 1> bias, Out<f32, 2> y,
                                          Out<f32, 2> means, Out<f32, 2> scales) {
    require(x.extent(1) == cols, "rows as wide as the kernel was made for");
    require((weight.extent(0) == cols) & (bias.extent(0) == cols), "a weight and a bias for each column");
    require((means.extent(0) == x.extent(0)) & (means.extent(1) == 1), "a mean for each row");
    same_extents(x, y);
    same_extents(means, scales);
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, cols}), average = mean(xs, 1), centered = xs - average;
    Tile scale = rsqrt(mean(centered * centered, 1) + eps);
    store(y, {row, 0}, centered * scale * load(weight, {0}, {cols}) + load(bias, {0}, {cols}));
    store(means, {row, 0}, average);
    store(scales, {row, 0}, scale);
  });
}

auto layer_norm_backward(int rows, int cols) {
  return kernel("layer_norm_backward", [=](In<f32, 2> x, In<f32, 1> weight, In<f32, 2> means, In<f32, 2> scales,
                                           In<f32, 2> dy, Out<f32, 2> dx, InOut<f32, 2> dweight, InOut<f32, 2> dbias) {
    require(x.extent(1) == cols, "rows as wide as the kernel was made for");
    require(weight.extent(0) == cols, "a weight for each column");
    require((means.extent(0) == x.extent(0)) & (means.extent(1) == 1), "a mean for each row");
    require((dweight.extent(0) == 1) & (dweight.extent(1) == cols), "a row of gradients of weights");
    same_extents(x, dy, dx);
    same_extents(means, scales);
    same_extents(dweight, dbias);
    Index i = blocks(cdiv(x.extent(0), rows));
    Tile g = load(dy, {i, 0}, {rows, cols}), scale = load(scales, {i, 0}, {rows, 1});
    Tile normal = (load(x, {i, 0}, {rows, cols}) - load(means, {i, 0}, {rows, 1})) * scale;
    Tile weighted = g * load(weight, {0}, {cols});
    store(dx, {i, 0}, scale * (weighted - mean(weighted, 1) - normal * mean(weighted * normal, 1)));
    atomic_add(dweight, {0, 0}, sum(g * normal, 0));
    atomic_add(dbias, {0, 0}, sum(g, 0));
  });
}

const Example layer_norm_gradient_example("layer_norm_gradient", 1e-5, [](const Device& device) {
  const int rows = 21, cols = 256;
  const double eps = 1e-5;
  const auto x = normal_values(rows * cols, 1), w = normal_values(cols, 2), b = normal_values(cols, 3);
  const auto dy = normal_values(rows * cols, 4);
  const auto device_x = tensor_of(device, {rows, cols}, x);
  const auto weight = tensor_of(device, {cols}, w), bias = tensor_of(device, {cols}, b);
  const auto y = device.tensor<f32>({rows, cols}), dx = device.tensor<f32>({rows, cols});
  const auto means = device.tensor<f32>({rows, 1}), scales = device.tensor<f32>({rows, 1});
  const std::vector<f32> zeros(cols);
  const auto dweight = tensor_of(device, {1, cols}, zeros), dbias = tensor_of(device, {1, cols}, zeros);
  launch(device.stream(), layer_norm_forward(cols, eps), device_x, weight, bias, y, means, scales);
  launch(device.stream(), layer_norm_backward(8, cols), device_x, weight, means, scales,
         tensor_of(device, {rows, cols}, dy), dx, dweight, dbias);

  std::vector<double> expected_y, expected_dx, expected_dw(cols), expected_db(cols);
  for (int row = 0; row < rows; ++row) {
    const f32 *xs = &x[row * cols], *g = &dy[row * cols];
    double average = 0, variance = 0, a = 0, c = 0;
    for (int i = 0; i < cols; ++i) average += xs[i] / cols;
    for (int i = 0; i < cols; ++i) variance += std::pow(xs[i] - average, 2) / cols;
    const double scale = 1 / std::sqrt(variance + eps);
    const auto normal = [&](int i) { return (xs[i] - average) * scale; };
    for (int i = 0; i < cols; ++i) a += g[i] * w[i] / cols, c += g[i] * w[i] * normal(i) / cols;
    for (int i = 0; i < cols; ++i) {
      expected_y.push_back(normal(i) * w[i] + b[i]);
      expected_dx.push_back(scale * (g[i] * w[i] - a - normal(i) * c));
      expected_dw[i] += g[i] * normal(i), expected_db[i] += g[i];
    }
  }
  return std::max({largest_error(y, expected_y), largest_error(dx, expected_dx), largest_error(dweight, expected_dw),
                   largest_error(dbias, expected_db)});
});

}  // namespace gallery
