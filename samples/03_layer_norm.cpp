// Lesson 3: kernels specialized for a size. Rows get mean 0 and variance 1, then scale and shift (Ba et al., 2016).
//
// A tile may have any extents: a row of 768 elements is a tile of 768, not a partly empty tile of 1024. Arguments of
// the C++ function around the kernel (cols) become constants of the kernel. A Scalar (eps) is a kernel parameter whose
// value is passed at each launch.
//
// require states a condition on extents and scalars. The host checks it at each launch and throws an Error with this
// text if it does not hold: here, for rows of another width, whose mean would be wrong.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <tessera/tessera.hpp>
#include "lesson.hpp"

using namespace tessera;

auto layer_norm(int cols) {
  return kernel("layer_norm", [=](In<f32, 2> x, In<f32, 1> weight, In<f32, 1> bias, Out<f32, 2> y, Scalar<f32> eps) {
    require(x.extent(1) == cols, "rows as wide as the kernel was made for");
    require((weight.extent(0) == cols) & (bias.extent(0) == cols), "a weight and a bias for each column");
    same_extents(x, y);
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, cols});
    Tile xc = xs - sum(xs, 1) / cols;
    Tile rstd = rsqrt(sum(xc * xc, 1) / cols + eps);
    store(y, {row, 0}, xc * rstd * load(weight, {0}, {cols}) + load(bias, {0}, {cols}));
  });
}

/// The same in plain C++ and in double precision.
std::vector<double> reference(const std::vector<f32>& x, const std::vector<f32>& weight, const std::vector<f32>& bias,
                              double eps) {
  const std::size_t cols = weight.size();
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size(); row += cols) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < cols; ++i) mean += x[row + i];
    mean /= static_cast<double>(cols);
    for (std::size_t i = 0; i < cols; ++i) variance += (x[row + i] - mean) * (x[row + i] - mean);
    variance /= static_cast<double>(cols);
    for (std::size_t i = 0; i < cols; ++i)
      y[row + i] = (x[row + i] - mean) / std::sqrt(variance + eps) * weight[i] + bias[i];
  }
  return y;
}

std::vector<f32> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<f32> normal;
  std::vector<f32> values(static_cast<std::size_t>(count));
  for (f32& value : values) value = normal(generator);
  return values;
}

bool correct(const Device& device, int cols) {
  const std::int64_t rows = 13;
  const double eps = 1e-5;
  const auto x = random_values(rows * cols, 1), weight = random_values(cols, 2), bias = random_values(cols, 3);

  Tensor<f32, 2> device_x(device, {rows, cols}), device_y(device, {rows, cols});
  Tensor<f32, 1> device_weight(device, {cols}), device_bias(device, {cols});
  device_x.copy_from(x);
  device_weight.copy_from(weight);
  device_bias.copy_from(bias);
  launch(device.stream(), layer_norm(cols), device_x, device_weight, device_bias, device_y, eps);
  const auto y = device_y.to_vector();

  const auto expected = reference(x, weight, bias, eps);
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double error = std::abs(y[i] - expected[i]);
    if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
  }
  const double allowed = 1e-5;  // a result of about 10 has a last bit of 1e-6, and about ten roundings contribute
  std::printf("03_layer_norm: rows of %d: max error %.1e (allowed %.0e)\n", cols, worst, allowed);
  return worst <= allowed;
}

bool refuses_other_widths(const Device& device) {
  Tensor<f32, 2> x(device, {4, 512}), y(device, {4, 512});
  Tensor<f32, 1> weight(device, {512}), bias(device, {512});
  try {
    launch(device.stream(), layer_norm(768), x, weight, bias, y, 1e-5);
  } catch (const Error& error) {
    std::printf("03_layer_norm: rows of 512 for a kernel of 768: %s\n", error.what());
    return true;
  }
  std::printf("03_layer_norm: rows of 512 for a kernel of 768: not rejected\n");
  return false;
}

int main(int argc, char** argv) {
  const auto graph = [] { return to_string(layer_norm(768).graph()); };
  return run_lesson(argc, argv, "03_layer_norm", graph, [] {
    const Device device = Device::best();
    bool ok = true;
    for (int cols : {1, 7, 768, 1537}) ok &= correct(device, cols);
    ok &= refuses_other_widths(device);
    return ok;
  });
}
