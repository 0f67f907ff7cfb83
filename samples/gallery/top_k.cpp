// The k largest elements of each row and their positions, largest first.
#include <algorithm>
#include <numeric>

#include "gallery/gallery.hpp"

namespace gallery {

auto top_k(int width, int k) {
  return kernel("top_k", [=](In<f32, 2> x, Out<f32, 2> values, Out<i32, 2> places) {
    require(x.extent(1) <= width, "rows no wider than the kernel was made for");
    require((values.extent(0) == x.extent(0)) & (values.extent(1) == k), "room for k of each row");
    same_extents(values, places);
    Index rows = blocks(cdiv(x.extent(0), 4));  // each of the 4 rows is sorted by one warp
    auto [largest, place] = top_k(load(x, {rows, 0}, {4, width}, -inf), k, 1);
    store(values, {rows, 0}, largest);
    store(places, {rows, 0}, place);
  });
}

const Example top_k_example("top_k", 0, [](const Device& device) {
  const int rows = 7, cols = 1000, k = 8;
  const auto x = normal_values(rows * cols, 1);
  const auto values = device.tensor<f32>({rows, k});
  const auto places = device.tensor<i32>({rows, k});
  launch(device.stream(), top_k(1024, k), tensor_of(device, {rows, cols}, x), values, places);

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
