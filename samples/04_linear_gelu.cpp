// Lesson 4: matmuls and loops. y = gelu(x w + b), the first half of a transformer's MLP.
//
// mma(a, b, c) computes a b + c for whole tiles; on a GPU it runs on the tensor cores. The operands may have a narrow
// element type; the sums are accumulated in f32. `for (Index k : range(n))` is a loop in the kernel. A value that
// changes from one iteration to the next is a Var, all others are Tiles. Here each CTA computes one tile of y: it
// iterates over k, loads a tile of x and a tile of w, and adds their product to the accumulator.
//
// bf16 serves only for storage and for the operands of mma. Values become narrow only where a cast says so. A device
// function is an ordinary C++ function on tile expressions: the compiler checks its types, and its operations become
// part of the kernel.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <tessera/tessera.hpp>
#include "lesson.hpp"

using namespace tessera;

auto gelu(TileExpr auto const& e) {
  Tile x = e;  // used five times, computed once
  // Often written as x / 2 (1 + tanh u), which is equal to x sigmoid(2u).
  return x * sigmoid(1.5957691216 * (x + 0.044715 * x * x * x));
}

template <Element T>
auto linear_gelu(int bm, int bn, int bk) {
  return kernel("linear_gelu", [=](In<T, 2> x, In<T, 2> w, In<f32, 1> bias, Out<T, 2> y) {
    require(x.extent(1) == w.extent(0), "inner extents agree");
    require((y.extent(0) == x.extent(0)) & (y.extent(1) == w.extent(1)), "a row of y for each of x, a column for each of w");
    require(bias.extent(0) == w.extent(1), "a bias for each column");
    auto [m, n] = blocks(cdiv(y.extent(0), bm), cdiv(y.extent(1), bn));
    Var acc = zeros<f32>({bm, bn});
    for (Index k : range(cdiv(x.extent(1), bk))) acc = mma(load(x, {m, k}, {bm, bk}), load(w, {k, n}, {bk, bn}), acc);
    store(y, {m, n}, cast<T>(gelu(acc + load(bias, {n}, {bn}))));
  });
}

struct Extents {
  int m, n, k;
};

/// The same in plain C++ and in double precision.
template <Element T>
std::vector<double> reference(const std::vector<T>& x, const std::vector<T>& w, const std::vector<f32>& bias,
                              Extents e) {
  const auto real = [](T value) -> double { return static_cast<f32>(value); };
  std::vector<double> y;
  for (int m = 0; m < e.m; ++m)
    for (int n = 0; n < e.n; ++n) {
      double a = bias[n];
      for (int k = 0; k < e.k; ++k) a += real(x[m * e.k + k]) * real(w[k * e.n + n]);
      y.push_back(0.5 * a * (1 + std::tanh(0.7978845608 * (a + 0.044715 * a * a * a))));
    }
  return y;
}

template <Element T>
std::vector<T> random_values(int count, double deviation, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<T> values(count);
  for (T& value : values) value = T(static_cast<f32>(normal(generator)));
  return values;
}

template <Element T>
bool correct(const Device& device, const char* type, Extents e, double allowed) {
  const auto x = random_values<T>(e.m * e.k, 1, 1), w = random_values<T>(e.k * e.n, 1 / std::sqrt(e.k), 2);
  const auto bias = random_values<f32>(e.n, 1, 3);

  Tensor<T, 2> device_x(device, {e.m, e.k}), device_w(device, {e.k, e.n}), device_y(device, {e.m, e.n});
  Tensor<f32, 1> device_bias(device, {e.n});
  device_x.copy_from(x);
  device_w.copy_from(w);
  device_bias.copy_from(bias);
  launch(device.stream(), linear_gelu<T>(64, 64, 32), device_x, device_w, device_bias, device_y);
  const auto y = device_y.to_vector();

  const auto expected = reference(x, w, bias, e);
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double error = std::abs(static_cast<f32>(y[i]) - expected[i]) / std::max(1.0, std::abs(expected[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
  }
  std::printf("04_linear_gelu: %dx%dx%d, %s: max error %.1e (allowed %.0e)\n", e.m, e.n, e.k, type, worst, allowed);
  return worst <= allowed;
}

int main(int argc, char** argv) {
  const auto graph = [] { return to_string(linear_gelu<bf16>(64, 64, 32).graph()); };
  return run_lesson(argc, argv, "04_linear_gelu", graph, [] {
    const Device device = Device::best();
    bool ok = true;
    for (Extents extents : {Extents{77, 130, 53}, Extents{256, 256, 256}}) {
      // The error is relative to results above 1. bf16 has 8 bits of precision: rounding y costs up to 2^-8, or 3.9e-3.
      ok &= correct<bf16>(device, "bf16", extents, 4e-3);
      // f32 has 24 bits, and a sum of up to 256 products loses a few of them.
      ok &= correct<f32>(device, "f32", extents, 5e-6);
    }
    return ok;
  });
}
