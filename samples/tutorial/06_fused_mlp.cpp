// Lesson 6 of docs/tutorial: two matmuls in one kernel. y = x + gelu(x up + a) down + b, a transformer's MLP, whose
// hidden values never leave the CTA that computes them.
//
// A CTA owns bm rows of x and iterates over the hidden units, bh at a time. The first matmul gives bm x bh hidden
// values. The second multiplies them by the rows of `down` that belong to these units and adds to the accumulator of y.
// The rows are `width` wide in one tile, so this suits narrow MLPs; wider ones are two kernels of lesson 4.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <tessera/tessera.hpp>
#include "lesson.hpp"

using namespace tessera;

template <Element T>
auto fused_mlp(int bm, int bh, int width) {
  return kernel("fused_mlp", [=](In<T, 2> x, In<T, 2> up, In<f32, 1> a, In<T, 2> down, In<f32, 1> b, Out<T, 2> y) {
    require((x.extent(1) == width) & (up.extent(0) == width), "rows as wide as the kernel was made for");
    require((down.extent(0) == up.extent(1)) & (down.extent(1) == width), "down has the extents of up, swapped");
    require((a.extent(0) == up.extent(1)) & (b.extent(0) == width), "a bias for each hidden unit and for each column");
    same_extents(x, y);
    Index m = blocks(cdiv(x.extent(0), bm));
    Tile xs = load(x, {m, 0}, {bm, width});
    Var acc = zeros<f32>({bm, width});
    // [loop]
    for (Index j : range(cdiv(up.extent(1), bh))) {
      Tile hidden = gelu_tanh(mma(xs, load(up, {0, j}, {width, bh})) + load(a, {j}, {bh}));
      acc = mma(cast<T>(hidden), load(down, {j, 0}, {bh, width}), acc);
    }
    // [/loop]
    store(y, {m, 0}, cast<T>(cast<f32>(xs) + acc + load(b, {0}, {width})));
  });
}

template <Element T>
std::vector<T> random_values(int count, double deviation, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<T> values(count);
  for (T& value : values) value = T(static_cast<f32>(normal(generator)));
  return values;
}

/// The same in plain C++ and in double precision.
template <Element T>
std::vector<double> reference(const std::vector<T>& x, const std::vector<T>& up, const std::vector<f32>& a,
                              const std::vector<T>& down, const std::vector<f32>& b) {
  const auto real = [](T value) -> double { return static_cast<f32>(value); };
  const int units = static_cast<int>(a.size()), width = static_cast<int>(b.size());
  std::vector<double> y, hidden(a.size());
  for (int row = 0; row < std::ssize(x) / width; ++row) {
    for (int unit = 0; unit < units; ++unit) {
      double sum = a[unit];
      for (int i = 0; i < width; ++i) sum += real(x[row * width + i]) * real(up[i * units + unit]);
      hidden[unit] = 0.5 * sum * (1 + std::tanh(0.7978845608 * (sum + 0.044715 * sum * sum * sum)));
    }
    for (int col = 0; col < width; ++col) {
      double sum = real(x[row * width + col]) + b[col];
      for (int unit = 0; unit < units; ++unit) sum += hidden[unit] * real(down[unit * width + col]);
      y.push_back(sum);
    }
  }
  return y;
}

template <Element T>
bool correct(const Device& device, const char* type, int rows, int units, double allowed) {
  const int width = 64;
  const auto x = random_values<T>(rows * width, 1, 1), up = random_values<T>(width * units, 1 / std::sqrt(width), 2);
  const auto down = random_values<T>(units * width, 1 / std::sqrt(units), 3);
  const auto a = random_values<f32>(units, 1, 4), b = random_values<f32>(width, 1, 5);

  Tensor<T, 2> device_y(device, {rows, width});
  launch(device.stream(), fused_mlp<T>(128, 64, width), device.tensor<T>({rows, width}, x),
         device.tensor<T>({width, units}, up), device.tensor<f32>({units}, a), device.tensor<T>({units, width}, down),
         device.tensor<f32>({width}, b), device_y);
  const auto y = device_y.to_vector();

  const auto expected = reference(x, up, a, down, b);
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double error = std::abs(static_cast<f32>(y[i]) - expected[i]) / std::max(1.0, std::abs(expected[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
  }
  std::printf("06_fused_mlp: %d rows, %d hidden units, %s: max error %.1e (allowed %.0e)\n", rows, units, type, worst,
              allowed);
  return worst <= allowed;
}

int main(int argc, char** argv) {
  const auto graph = [] { return to_string(fused_mlp<bf16>(128, 64, 64).graph()); };
  return run_lesson(argc, argv, "06_fused_mlp", graph, [] {
    const Device device = Device::best();
    // bf16 has 8 bits of precision: rounding y costs up to 2^-8. Rounding the hidden values costs 2^-8 / sqrt(3) of a
    // result of size 1 on average, and four times that for one result in ten thousand.
    bool ok = correct<bf16>(device, "bf16", 150, 256, 1.3e-2);
    ok &= correct<f32>(device, "f32", 150, 200, 5e-6);  // a last, partial tile of hidden units
    return ok;
  });
}
