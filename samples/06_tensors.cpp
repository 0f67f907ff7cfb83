// Lesson 6: tensors that fuse themselves. An expression of whole tensors is computed by a few kernels, which Tessera
// writes in the language of the lessons before.
//
// tile(x) begins an expression. Nothing is computed until run(), which takes the whole expression into account: here
// the bias and GELU are applied to the accumulators of the first product, the residual to those of the second.
//
// compile(f) makes a function: the kernels are made for the first call with tensors of some extents, and only launched
// by later ones. describe() says which kernels there are; --print prints that, and their graphs, for an sm_90a GPU.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <tessera/tensors.hpp>
#include "lesson.hpp"

using namespace tessera;

struct Mlp {
  Tensor<f32, 2> up, down;
  Tensor<f32, 1> up_bias, down_bias;
  Lazy<f32, 2> operator()(const Lazy<f32, 2>& x) const {
    return x + x.linear(up, up_bias).gelu().linear(down, down_bias);
  }
};

std::vector<f32> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<f32> normal;
  std::vector<f32> values(static_cast<std::size_t>(count));
  for (f32& value : values) value = normal(generator);
  return values;
}

template <std::size_t R>
Tensor<f32, static_cast<int>(R)> random_tensor(const Device& device, const std::int64_t (&extents)[R], unsigned seed) {
  auto tensor = device.tensor<f32>(extents);
  tensor.copy_from(random_values(tensor.size(), seed));
  return tensor;
}

Mlp random_mlp(const Device& device, std::int64_t width, std::int64_t inner) {
  return {random_tensor(device, {width, inner}, 1), random_tensor(device, {inner, width}, 2),
          random_tensor(device, {inner}, 3), random_tensor(device, {width}, 4)};
}

/// x w + b in double precision.
std::vector<double> linear(const std::vector<double>& x, const std::vector<f32>& w, const std::vector<f32>& b) {
  const std::size_t n = b.size(), k = w.size() / n;
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size() / k; ++row)
    for (std::size_t col = 0; col < n; ++col) {
      double sum = b[col];
      for (std::size_t i = 0; i < k; ++i) sum += x[row * k + i] * static_cast<double>(w[i * n + col]);
      y.push_back(sum);
    }
  return y;
}

/// The largest error of the MLP, relative to the largest result.
double error_of(const Mlp& mlp, const Tensor<f32, 2>& x, const Tensor<f32, 2>& y) {
  const std::vector<f32> given = x.to_vector(), results = y.to_vector();
  std::vector<double> hidden =
      linear(std::vector<double>(given.begin(), given.end()), mlp.up.to_vector(), mlp.up_bias.to_vector());
  for (double& h : hidden) h = h / 2 * (1 + std::erf(h / std::sqrt(2.0)));
  const std::vector<double> expected = linear(hidden, mlp.down.to_vector(), mlp.down_bias.to_vector());
  double error = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double exact = expected[i] + static_cast<double>(given[i]), difference = std::abs(results[i] - exact);
    largest = std::max(largest, std::abs(exact));
    error = std::max(error, std::isnan(difference) ? inf : difference);
  }
  return error / largest;
}

int main(int argc, char** argv) {
  const auto kernels = [] {
    const Device device = Device::cpu();
    const Lazy<f32, 2> y = random_mlp(device, 64, 256)(tile(random_tensor(device, {128, 64}, 5)));
    std::string text = y.describe(Arch::sm_90a);
    for (const auto& kernel : y.kernels(Arch::sm_90a)) text += "\n" + to_string(kernel->traced());
    return text;
  };
  return run_lesson(argc, argv, "06_tensors", kernels, [] {
    const Device device = Device::best();
    const Mlp mlp = random_mlp(device, 64, 256);
    const auto layer = compile([=](Lazy<f32, 2> x) { return mlp(x); });
    bool ok = true;
    for (const std::int64_t rows : {1, 37, 128}) {
      const Tensor<f32, 2> x = random_tensor(device, {rows, 64}, 6);
      const double error = error_of(mlp, x, layer(x)), allowed = 1e-6;
      std::printf("06_tensors: %d rows: max error %.1e (allowed %.0e)\n", static_cast<int>(rows), error, allowed);
      ok &= error <= allowed;
    }
    return ok;
  });
}
