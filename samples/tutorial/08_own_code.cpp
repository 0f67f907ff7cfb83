// Lesson 8 of docs/tutorial: code of your own. A device function, an op whose code for the GPU you write, and a whole
// kernel in CUDA C++.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>
#include <vector>

#include <tessera/tessera.hpp>
#include "lesson.hpp"

using namespace tessera;

// [polar]
auto polar(TileExpr auto const& real, TileExpr auto const& imaginary) {
  Tile a = real, b = imaginary;  // named, as both are used twice
  return std::tuple(sqrt(a * a + b * b), atan2(b, a));
}

auto to_polar(int size) {
  return kernel("to_polar", [=](In<f32, 1> re, In<f32, 1> im, Out<f32, 1> radius, Out<f32, 1> angle) {
    same_extents(re, im, radius, angle);
    Index i = blocks(cdiv(re.extent(0), size));
    auto [r, phi] = polar(load(re, {i}, {size}), load(im, {i}, {size}));
    store(radius, {i}, r);
    store(angle, {i}, phi);
  });
}
// [/polar]

// [op]
const auto shrink = cuda_op("shrink", "copysignf(fmaxf(fabsf(a) - b, 0.0f), a)",
                            [](float a, float b) { return std::copysign(std::max(std::abs(a) - b, 0.0f), a); });

auto soft_threshold(int size) {
  return kernel("soft_threshold", [=](In<f32, 1> x, Out<f32, 1> y, Scalar<f32> threshold) {
    same_extents(x, y);
    Index i = blocks(cdiv(x.extent(0), size));
    store(y, {i}, shrink(load(x, {i}, {size}), threshold));
  });
}
// [/op]

// [cuda]
const CudaSource collatz_text = R"(
  extern "C" __global__ void collatz(const int* n, int* steps, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int taken = 0;
    for (long long x = n[i]; x > 1; ++taken) x = x % 2 ? 3 * x + 1 : x / 2;
    steps[i] = taken;
  })";

const auto collatz_on_host = [](const int* n, int* steps, int count) {
  for (int i = 0; i < count; ++i) {
    int taken = 0;
    for (long long x = n[i]; x > 1; ++taken) x = x % 2 ? 3 * x + 1 : x / 2;
    steps[i] = taken;
  }
};

auto collatz() {
  const auto launch = [](In<i32, 1> n, Out<i32, 1> steps) {
    same_extents(n, steps);
    return CudaLaunch{.blocks = {cdiv(n.extent(0), 256)}, .threads = {256}, .numbers = {n.extent(0)}};
  };
  return cuda_kernel("collatz", collatz_text, launch, collatz_on_host);
}
// [/cuda]

// [tile]
auto collatz_of_tiles(int size) {
  return kernel("collatz_of_tiles", [=](In<i32, 1> n, Out<i32, 1> steps) {
    same_extents(n, steps);
    Index i = blocks(cdiv(n.extent(0), size));
    Var x = cast<i64>(load(n, {i}, {size}, 1));
    Var taken = zeros<i32>({size});
    while_([&] { return item(any(x > 1)); },
           [&] {
      taken = taken + cast<i32>(x > 1);
      x = where(x > 1, where(x % 2 == 1, 3 * x + 1, x / 2), x);
    });
    store(steps, {i}, taken);
  });
}
// [/tile]

bool polar_right(const Device& device) {
  const int count = 1000;
  std::vector<f32> re, im;
  for (int i = 0; i < count; ++i) {
    const auto r = static_cast<f32>(i);
    re.push_back(r * std::cos(r / 10)), im.push_back(r * std::sin(r / 10));
  }
  const auto radius = device.tensor<f32>({count}), angle = device.tensor<f32>({count});
  launch(device.stream(), to_polar(256), device.tensor<f32>({count}, re), device.tensor<f32>({count}, im), radius,
         angle);
  const auto r = radius.to_vector(), phi = angle.to_vector();
  double worst = 0;
  for (int i = 0; i < count; ++i) {
    const double error = std::max(std::abs(r[i] - std::hypot(double{re[i]}, double{im[i]})) / std::max(1, i),
                                  std::abs(phi[i] - std::atan2(double{im[i]}, double{re[i]})));
    if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
  }
  const double allowed = 1e-6;
  std::printf("08_own_code: to_polar: max error %.1e (allowed %.0e)\n", worst, allowed);
  return worst <= allowed;
}

bool op_right(const Device& device) {
  const std::vector<f32> x{1, -2, 0, 0.25f, -0.25f, 3e38f, 0.5f}, expected{0.5f, -1.5f, 0, 0, 0, 3e38f, 0};
  const auto y = device.tensor<f32>({std::ssize(x)});
  launch(device.stream(), soft_threshold(64), device.tensor<f32>({std::ssize(x)}, x), y, 0.5f);
  const bool right = y.to_vector() == expected;
  std::printf("08_own_code: soft_threshold: %s\n", right ? "right" : "wrong");
  return right;
}

bool collatz_right(const Device& device) {
  const int count = 3000;
  std::vector<i32> n(count), expected(count);
  for (int i = 0; i < count; ++i) n[i] = i + 1;
  collatz_on_host(n.data(), expected.data(), count);
  const auto numbers = device.tensor<i32>({count}, n), steps = device.tensor<i32>({count});
  launch(device.stream(), collatz(), numbers, steps);
  bool right = steps.to_vector() == expected;
  steps.fill(-1);
  launch(device.stream(), collatz_of_tiles(128), numbers, steps);
  right &= steps.to_vector() == expected;
  std::printf("08_own_code: collatz: %s\n", right ? "right" : "wrong");
  return right;
}

int main(int argc, char** argv) {
  const auto graph = [] { return to_string(to_polar(256).graph()); };
  return run_lesson(argc, argv, "08_own_code", graph, [] {
    const Device device = Device::best();
    bool ok = polar_right(device);
    ok &= op_right(device);
    ok &= collatz_right(device);
    return ok;
  });
}
