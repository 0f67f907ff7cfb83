// Rotary embedding: the two halves of each head are rotated by an angle that grows with the position (Su et al., 2021).
#include <cmath>

#include "gallery/gallery.hpp"

namespace gallery {

auto rotary_embedding(int heads, int width, double base) {
  return kernel("rotary_embedding", [=](In<f32, 3> x, Out<f32, 3> y) {
    require((x.extent(1) == heads) & (x.extent(2) == width), "heads as the kernel was made for");
    same_extents(x, y);
    Index position = blocks(x.extent(0));
    Tile i = cast<f32>(iota({1, 1, width / 2}, 2));
    Tile angle = cast<f32>(position) * exp2(i * (-2 * std::log2(base) / width));
    Tile c = cos(angle), s = sin(angle);
    auto [a, b] = split<2>(load(x, {position, 0, 0}, {1, heads, width}), 2);
    store(y, {position, 0, 0}, concat(2, a * c - b * s, b * c + a * s));
  });
}

const Example rotary_embedding_example("rotary_embedding", 5e-5, [](const Device& device) {
  const int positions = 67, heads = 4, width = 64, half = width / 2;
  const auto x = normal_values(positions * heads * width, 1);
  const auto y = device.tensor<f32>({positions, heads, width});
  launch(device.stream(), rotary_embedding(heads, width, 10000), tensor_of(device, {positions, heads, width}, x), y);

  std::vector<double> expected(x.size());
  for (int row = 0; row < positions * heads; ++row)
    for (int i = 0; i < half; ++i) {
      const double angle = row / heads * std::pow(10000., -2. * i / width);
      const double a = x[row * width + i], b = x[row * width + half + i];
      expected[row * width + i] = a * std::cos(angle) - b * std::sin(angle);
      expected[row * width + half + i] = b * std::cos(angle) + a * std::sin(angle);
    }
  return largest_error(y, expected);
});

}  // namespace gallery
