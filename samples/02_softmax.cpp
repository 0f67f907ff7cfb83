// Lesson 2: reductions and named tiles. y = exp(x) / sum(exp(x)), for each row of a matrix.
//
// sum and max reduce along an axis and keep that axis with extent 1, so the result broadcasts against the tile it was
// computed from, by NumPy's rules. `Tile e = ...` gives a value a name. A Tile is immutable, and it is computed once
// however often it is used.
//
// One kernel serves rows of any width up to the width of its tile. The part of the tile beyond the end of the row is
// filled with the last argument of load, and store never writes it. Here the fill value is -inf: it is never the
// maximum, and it adds exp(-inf) = 0 to the sum. Wider rows would be cut off, so require makes the launch reject them;
// lesson 3 explains how.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <tessera/tessera.hpp>
#include "lesson.hpp"

using namespace tessera;

auto softmax(int width) {
  return kernel("softmax", [=](In<f32, 2> x, Out<f32, 2> y) {
    require(x.extent(1) <= width, "rows no wider than the kernel was made for");
    same_extents(x, y);
    Index row = blocks(x.extent(0));
    Tile xs = load(x, {row, 0}, {1, width}, -inf);
    Tile e = exp(xs - max(xs, 1));  // the largest element becomes exp(0), so nothing overflows
    store(y, {row, 0}, e / sum(e, 1));
  });
}

/// The same in plain C++ and in double precision.
std::vector<double> reference(const std::vector<f32>& x, std::size_t cols) {
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size(); row += cols) {
    double sum = 0;
    for (std::size_t i = row; i < row + cols; ++i) sum += y[i] = std::exp(static_cast<double>(x[i]));
    for (std::size_t i = row; i < row + cols; ++i) y[i] /= sum;
  }
  return y;
}

std::vector<f32> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<f32> uniform(-4, 4);
  std::vector<f32> values(static_cast<std::size_t>(count));
  for (f32& value : values) value = uniform(generator);
  return values;
}

bool correct(const Device& device, const auto& wide, std::int64_t cols) {
  const std::int64_t rows = 13;
  const auto x = random_values(rows * cols, 1);

  Tensor<f32, 2> device_x(device, {rows, cols}), device_y(device, {rows, cols});
  device_x.copy_from(x);
  launch(device.stream(), wide, device_x, device_y);
  const auto y = device_y.to_vector();

  const auto expected = reference(x, static_cast<std::size_t>(cols));
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double error = std::abs(y[i] / expected[i] - 1);
    if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
  }
  // A relative error. exp and its argument, which may be as far as 8 from 0, account for about 8e-7; the rest allows
  // for the sum of a wide row.
  const double allowed = 4e-6;
  std::printf("02_softmax: rows of %lld: max error %.1e (allowed %.0e)\n", static_cast<long long>(cols), worst,
              allowed);
  return worst <= allowed;
}

int main(int argc, char** argv) {
  const auto graph = [] { return to_string(softmax(2048).graph()); };
  return run_lesson(argc, argv, "02_softmax", graph, [] {
    const auto wide = softmax(2048);
    const Device device = Device::best();
    bool ok = true;
    for (std::int64_t cols : {1, 7, 768, 1537, 2048}) ok &= correct(device, wide, cols);
    return ok;
  });
}
