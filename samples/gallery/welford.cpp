// Mean and variance of rows of any length in one pass (Welford, 1962). Each part of a row has a mean, a sum of squared
// distances from it, and a count; a user-defined function combines two parts into one (Chan, Golub and LeVeque, 1979).
// Precision is kept even where the mean is far larger than the deviation. The mean of squares minus the square of the
// mean would lose it.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "gallery/gallery.hpp"

namespace gallery {

auto welford(int rows, int width) {
  return kernel("welford", [=](In<f32, 2> x, Out<f32, 1> means, Out<f32, 1> variances) {
    require((means.extent(0) == x.extent(0)) & (variances.extent(0) == x.extent(0)),
            "a mean and a variance for each row");
    const auto together = [](const auto& a, const auto& b) {
      const auto& [mean_a, squares_a, count_a] = a;
      const auto& [mean_b, squares_b, count_b] = b;
      Tile count = count_a + count_b, delta = mean_b - mean_a, share = count_b / maximum(count, 1);
      return std::tuple(mean_a + delta * share, squares_a + squares_b + delta * delta * count_a * share, count);
    };
    Index block = blocks(cdiv(x.extent(0), rows));
    // Each of the `width` columns accumulates over the row independently; at the end the columns are combined.
    Var mean = zeros<f32>({rows, width}), squares = mean, count = mean;
    for (Index i : range(cdiv(x.extent(1), width))) {
      Tile there = cast<f32>(i * width + iota({1, width}, 1) < x.extent(1));
      const auto [m, s, n] = together(std::tie(mean, squares, count),
                                      std::tuple(load(x, {block, i}, {rows, width}), zeros<f32>({1, 1}), there));
      mean = m, squares = s, count = n;
    }
    const auto [m, s, n] = reduce(std::tuple(mean, squares, count), 1, together, {0, 0, 0});
    store(means, {block}, squeeze(m, 1));
    store(variances, {block}, squeeze(s / n, 1));
  });
}

const Example welford_example("welford", 2e-5, [](const Device& device) {
  const int rows = 13, cols = 1000;
  auto x = normal_values(rows * cols, 1);
  for (f32& value : x) value += 1000;
  const auto means = device.tensor<f32>({rows}), variances = device.tensor<f32>({rows});
  launch(device.stream(), welford(4, 128), tensor_of(device, {rows, cols}, x), means, variances);

  std::vector<double> expected_means, expected_variances;
  for (int row = 0; row < rows; ++row) {
    double mean = 0, squares = 0;
    for (int i = 0; i < cols; ++i) mean += x[row * cols + i] / double{cols};
    for (int i = 0; i < cols; ++i) squares += std::pow(x[row * cols + i] - mean, 2);
    expected_means.push_back(mean), expected_variances.push_back(squares / cols);
  }
  return std::max(largest_error(means, expected_means), largest_error(variances, expected_variances));
});

}  // namespace gallery
