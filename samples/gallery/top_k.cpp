// The k largest of each row and where they stand, the largest first: k times the largest of what is left.
#include <algorithm>
#include <numeric>

#include "gallery/gallery.hpp"

namespace gallery {

auto top_k(int width) {
  return kernel("top_k", [=](In<f32, 2> x, Out<f32, 2> values, Out<i32, 2> places) {
    require(x.extent(1) <= width, "rows no wider than the kernel was made for");
    same_extents(values, places);
    Index row = blocks(x.extent(0));
    Var left = load(x, {row, 0}, {1, width}, -inf);
    for (Index i : range(values.extent(1))) {
      auto [largest, place] = max_with_index(left, 1);
      store(values, {row, i}, largest);
      store(places, {row, i}, place);
      left = where(iota({1, width}, 1) == place, -inf, left);
    }
  });
}

const Example top_k_example("top_k", 0, [](const Device& device) {
  const int rows = 7, cols = 1000, k = 8;
  const auto x = normal_values(rows * cols, 1);
  const auto values = device.tensor<f32>({rows, k});
  const auto places = device.tensor<i32>({rows, k});
  launch(device.stream(), top_k(1024), tensor_of(device, {rows, cols}, x), values, places);

  std::vector<double> expected_values, expected_places;
  for (int row = 0; row < rows; ++row) {
    std::vector<int> order(cols);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](int i) { return x[row * cols + i]; });
    for (int i = 0; i < k; ++i)
      expected_places.push_back(order[i]), expected_values.push_back(x[row * cols + order[i]]);
  }
  return std::max(largest_error(values, expected_values), largest_error(places, expected_places));
});

}  // namespace gallery
