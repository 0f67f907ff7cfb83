// Exercise 6: a gated MLP in one kernel. y = (silu(x gate) * (x up)) down.
#include <cmath>

#include "tutorial/solutions/solutions.hpp"

namespace solutions {

// [kernel]
auto gated_mlp(int bm, int bh, int width) {
  return kernel("gated_mlp", [=](In<f32, 2> x, In<f32, 2> gate, In<f32, 2> up, In<f32, 2> down, Out<f32, 2> y) {
    require((x.extent(1) == width) & (up.extent(0) == width), "rows as wide as the kernel was made for");
    require((down.extent(0) == up.extent(1)) & (down.extent(1) == width), "down has the extents of up, swapped");
    same_extents(gate, up);
    same_extents(x, y);
    Index m = blocks(cdiv(x.extent(0), bm));
    Tile xs = load(x, {m, 0}, {bm, width});
    Var acc = zeros<f32>({bm, width});
    for (Index j : range(cdiv(up.extent(1), bh))) {
      Tile hidden = silu(mma(xs, load(gate, {0, j}, {width, bh}))) * mma(xs, load(up, {0, j}, {width, bh}));
      acc = mma(hidden, load(down, {j, 0}, {bh, width}), acc);
    }
    store(y, {m, 0}, acc);
  });
}
// [/kernel]

const Solution gated_mlp_solution(6, "gated_mlp", [](const Device& device) {
  const int rows = 50, width = 32, units = 100;
  const auto x = normal_values(rows * width, 1), down = normal_values(units * width, 2, 1 / std::sqrt(units));
  const auto gate = normal_values(width * units, 3, 1 / std::sqrt(width)),
             up = normal_values(width * units, 4, 1 / std::sqrt(width));
  const auto y = device.tensor<f32>({rows, width});
  launch(device.stream(), gated_mlp(32, 32, width), device.tensor<f32>({rows, width}, x),
         device.tensor<f32>({width, units}, gate), device.tensor<f32>({width, units}, up),
         device.tensor<f32>({units, width}, down), y);

  std::vector<double> expected;
  for (int row = 0; row < rows; ++row) {
    std::vector<double> hidden;
    for (int unit = 0; unit < units; ++unit) {
      double g = 0, u = 0;
      for (int i = 0; i < width; ++i) {
        g += double{x[row * width + i]} * gate[i * units + unit];
        u += double{x[row * width + i]} * up[i * units + unit];
      }
      hidden.push_back(g / (1 + std::exp(-g)) * u);
    }
    for (int col = 0; col < width; ++col) {
      double sum = 0;
      for (int unit = 0; unit < units; ++unit) sum += hidden[unit] * down[unit * width + col];
      expected.push_back(sum);
    }
  }
  return agree("06_gated_mlp", y.to_vector(), expected, 5e-6);
});

}  // namespace solutions
