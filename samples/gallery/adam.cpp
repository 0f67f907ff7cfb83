// One step of the Adam optimizer (Kingma and Ba, 2015), in place.
#include <cmath>

#include "gallery/gallery.hpp"

namespace gallery {

auto adam(int size, double beta1, double beta2, double eps) {
  return kernel("adam", [=](InOut<f32, 1> parameters, In<f32, 1> gradients, InOut<f32, 1> means, InOut<f32, 1> squares,
                            Scalar<f32> rate, Scalar<f32> correction1, Scalar<f32> correction2) {
    same_extents(parameters, gradients);
    same_extents(parameters, means);
    same_extents(parameters, squares);
    Index i = blocks(cdiv(parameters.extent(0), size));
    Tile p = load(parameters, {i}, {size}), g = load(gradients, {i}, {size});
    Tile m = load(means, {i}, {size}), v = load(squares, {i}, {size});
    Tile mean = beta1 * m + (1 - beta1) * g, square = beta2 * v + (1 - beta2) * g * g;
    store(means, {i}, mean);
    store(squares, {i}, square);
    store(parameters, {i}, p - rate * (mean / correction1) / (sqrt(square / correction2) + eps));
  });
}

const Example adam_example("adam", 1e-6, [](const Device& device) {
  const int count = 10007;
  const double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, rate = 1e-3;
  const auto values = normal_values(count, 1);
  const std::vector<f32> zeros(count);
  const auto parameters = tensor_of(device, {count}, values);
  const auto means = tensor_of(device, {count}, zeros), squares = tensor_of(device, {count}, zeros);
  const auto step = adam(1024, beta1, beta2, eps);
  std::vector<double> p(values.begin(), values.end()), m(count), v(count);
  for (int t = 1; t <= 3; ++t) {
    const auto g = normal_values(count, 1 + t);
    const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
    launch(device.stream(), step, parameters, tensor_of(device, {count}, g), means, squares, rate, correction1,
           correction2);
    for (int i = 0; i < count; ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      p[i] -= rate * (m[i] / correction1) / (std::sqrt(v[i] / correction2) + eps);
    }
  }
  return largest_error(parameters, p);
});

}  // namespace gallery
