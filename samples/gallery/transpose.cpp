// Transpose: a tile is loaded at (i, j), transposed, and stored at (j, i).
#include "gallery/gallery.hpp"

namespace gallery {

auto transposed(int bm, int bn) {
  return kernel("transposed", [=](In<f32, 2> x, Out<f32, 2> y) {
    require((x.extent(0) == y.extent(1)) & (x.extent(1) == y.extent(0)), "y has the extents of x, exchanged");
    auto [i, j] = blocks(cdiv(x.extent(0), bm), cdiv(x.extent(1), bn));
    store(y, {j, i}, transpose(load(x, {i, j}, {bm, bn})));
  });
}

const Example transpose_example("transpose", 0, [](const Device& device) {
  const int rows = 77, cols = 130;
  const auto x = normal_values(rows * cols, 1);
  const auto y = device.tensor<f32>({cols, rows});
  launch(device.stream(), transposed(32, 64), tensor_of(device, {rows, cols}, x), y);

  std::vector<double> expected;
  for (int j = 0; j < cols; ++j)
    for (int i = 0; i < rows; ++i) expected.push_back(x[i * cols + j]);
  return largest_error(y, expected);
});

}  // namespace gallery
