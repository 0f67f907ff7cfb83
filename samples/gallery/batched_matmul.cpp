// Batched matmul: c[i] = a[i] b[i] for bf16 matrices, accumulated in f32.
#include "gallery/gallery.hpp"

namespace gallery {

auto batched_matmul(int bm, int bn, int bk) {
  return kernel("batched_matmul", [=](In<bf16, 3> a, In<bf16, 3> b, Out<f32, 3> c) {
    require(a.extent(2) == b.extent(1), "inner extents agree");
    require((a.extent(0) == b.extent(0)) & (a.extent(0) == c.extent(0)), "as many matrices of each");
    require((c.extent(1) == a.extent(1)) & (c.extent(2) == b.extent(2)), "a row of c for each of a, a column for each of b");
    auto [batch, m, n] = blocks(c.extent(0), cdiv(c.extent(1), bm), cdiv(c.extent(2), bn));
    Var acc = zeros<f32>({bm, bn});
    for (Index k : range(cdiv(a.extent(2), bk)))
      acc = mma(squeeze(load(a, {batch, m, k}, {1, bm, bk}), 0), squeeze(load(b, {batch, k, n}, {1, bk, bn}), 0), acc);
    store(c, {batch, m, n}, expand_dims(acc, 0));
  });
}

const Example batched_matmul_example("batched_matmul", 1e-5, [](const Device& device) {
  const int batches = 3, rows = 50, cols = 70, inner = 100;
  const auto narrow = [](const std::vector<f32>& values) { return std::vector<bf16>(values.begin(), values.end()); };
  const auto a = narrow(normal_values(batches * rows * inner, 1)), b = narrow(normal_values(batches * inner * cols, 2));
  const auto c = device.tensor<f32>({batches, rows, cols});
  launch(device.stream(), batched_matmul(32, 64, 32), tensor_of(device, {batches, rows, inner}, a),
         tensor_of(device, {batches, inner, cols}, b), c);

  std::vector<double> expected;
  for (int row = 0; row < batches * rows; ++row)
    for (int col = 0; col < cols; ++col) {
      double sum = 0;
      for (int k = 0; k < inner; ++k)
        sum +=
            double{static_cast<f32>(a[row * inner + k])} * static_cast<f32>(b[(row / rows * inner + k) * cols + col]);
      expected.push_back(sum);
    }
  return largest_error(c, expected);
});

}  // namespace gallery
