// Stencil: one step of heat diffusion on a grid whose border is held at 0. The neighbors come from the same view,
// shifted by one element.
#include "gallery/gallery.hpp"

namespace gallery {

auto heat(int bm, int bn) {
  return kernel("heat", [=](In<f32, 2> x, Out<f32, 2> y, Scalar<f32> rate) {
    same_extents(x, y);
    auto [i, j] = blocks(cdiv(x.extent(0), bm), cdiv(x.extent(1), bn));
    Index m = i, n = j;  // older versions of clang cannot capture structured bindings
    const auto shifted = [&](int down, int right) {
      return load(x.slice(0, down, x.extent(0)).slice(1, right, x.extent(1)), {m, n}, {bm, bn});
    };
    Tile here = shifted(0, 0);
    Tile around = shifted(-1, 0) + shifted(1, 0) + shifted(0, -1) + shifted(0, 1);
    store(y, {m, n}, here + rate * (around - 4 * here));
  });
}

const Example stencil_example("stencil", 2e-6, [](const Device& device) {
  const int rows = 77, cols = 130;
  const auto x = normal_values(rows * cols, 1);
  const auto y = device.tensor<f32>({rows, cols});
  launch(device.stream(), heat(32, 64), tensor_of(device, {rows, cols}, x), y, 0.2);

  const auto at = [&](int i, int j) -> double {
    return i < 0 || i >= rows || j < 0 || j >= cols ? 0 : x[i * cols + j];
  };
  std::vector<double> expected;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j)
      expected.push_back(at(i, j) + 0.2 * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4 * at(i, j)));
  return largest_error(y, expected);
});

}  // namespace gallery
