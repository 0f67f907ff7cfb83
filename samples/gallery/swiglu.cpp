// SwiGLU: silu(x w) * (x v) for each matrix of a batch (Shazeer, 2020). Both matmuls share the loads of x.
#include <cmath>

#include "gallery/gallery.hpp"

namespace gallery {

auto swiglu(int bm, int bn, int bk) {
  return kernel("swiglu", [=](In<f32, 3> x, In<f32, 3> w, In<f32, 3> v, Out<f32, 3> y) {
    require(x.extent(2) == w.extent(1), "inner extents agree");
    require((x.extent(0) == w.extent(0)) & (x.extent(0) == y.extent(0)), "as many matrices of each");
    require((y.extent(1) == x.extent(1)) & (y.extent(2) == w.extent(2)), "a row of y for each of x, a column for each of w");
    same_extents(w, v);
    auto [batch, m, n] = blocks(y.extent(0), cdiv(y.extent(1), bm), cdiv(y.extent(2), bn));
    Var gate = zeros<f32>({bm, bn}), up = zeros<f32>({bm, bn});
    for (Index k : range(cdiv(x.extent(2), bk))) {
      Tile xs = squeeze(load(x, {batch, m, k}, {1, bm, bk}), 0);
      gate = mma(xs, squeeze(load(w, {batch, k, n}, {1, bk, bn}), 0), gate);
      up = mma(xs, squeeze(load(v, {batch, k, n}, {1, bk, bn}), 0), up);
    }
    store(y, {batch, m, n}, expand_dims(silu(gate) * up, 0));
  });
}

const Example swiglu_example("swiglu", 5e-5, [](const Device& device) {
  const int batches = 2, rows = 37, cols = 70, inner = 53;
  const auto x = normal_values(batches * rows * inner, 1), w = normal_values(batches * inner * cols, 2);
  const auto v = normal_values(batches * inner * cols, 3);
  const auto y = device.tensor<f32>({batches, rows, cols});
  launch(device.stream(), swiglu(32, 32, 16), tensor_of(device, {batches, rows, inner}, x),
         tensor_of(device, {batches, inner, cols}, w), tensor_of(device, {batches, inner, cols}, v), y);

  std::vector<double> expected;
  for (int row = 0; row < batches * rows; ++row)
    for (int col = 0; col < cols; ++col) {
      double gate = 0, up = 0;
      for (int k = 0; k < inner; ++k) {
        const int at = (row / rows * inner + k) * cols + col;
        gate += double{x[row * inner + k]} * w[at], up += double{x[row * inner + k]} * v[at];
      }
      expected.push_back(gate / (1 + std::exp(-gate)) * up);
    }
  return largest_error(y, expected);
});

}  // namespace gallery
