// Grouped matmul: products of matrices of different sizes in one launch, as mixtures of experts and batches of adapters
// need them. The matrices are anywhere in memory; the kernel gets their addresses, extents and strides.
#include "gallery/gallery.hpp"

namespace gallery {

template <int most>
auto grouped_matmul(int bm, int bn, int bk) {
  return kernel("grouped_matmul", [=](List<In<f32, 2>, most> a, List<In<f32, 2>, most> b, List<Out<f32, 2>, most> c) {
    const auto tiles = [&](const auto& group) { return cdiv(c[group].extent(0), bm) * cdiv(c[group].extent(1), bn); };
    Var all = constant<i32>(0);
    for (int group = 0; group < most; ++group) {
      require(a[group].extent(1) == b[group].extent(0), "inner extents agree");
      require((c[group].extent(0) == a[group].extent(0)) & (c[group].extent(1) == b[group].extent(1)),
              "c has the rows of a and the columns of b");
      all = all + tiles(group);
    }
    // A block finds its matrix by counting tiles.
    Var group = constant<i32>(0);
    Var tile = blocks(all);
    while_([&] { return tile >= tiles(group); }, [&] {
      tile = tile - tiles(group);
      group = group + 1;
    });
    const Index at = group, columns = cdiv(c[at].extent(1), bn), m = tile / columns, n = tile % columns;
    Var acc = zeros<f32>({bm, bn});
    for (Index k : range(cdiv(a[at].extent(1), bk)))
      acc = mma(load(a[at], {m, k}, {bm, bk}), load(b[at], {k, n}, {bk, bn}), acc);
    store(c[at], {m, n}, acc);
  });
}

const Example grouped_matmul_example("grouped_matmul", 1e-5, [](const Device& device) {
  struct Size {
    std::int64_t m, n, k;
  };
  const std::vector<Size> sizes = {{70, 50, 33}, {1, 200, 16}, {64, 64, 80}, {0, 40, 8}, {130, 7, 65}};
  std::vector<Tensor<f32, 2>> a, b, c;
  std::vector<std::vector<double>> expected;
  for (const auto [m, n, k] : sizes) {
    const auto x = normal_values(m * k, static_cast<unsigned>(m)), y = normal_values(k * n, static_cast<unsigned>(n));
    a.push_back(tensor_of(device, {m, k}, x));
    b.push_back(tensor_of(device, {k, n}, y));
    c.push_back(device.tensor<f32>({m, n}));
    std::vector<double>& product = expected.emplace_back();
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t col = 0; col < n; ++col) {
        double sum = 0;
        for (std::int64_t i = 0; i < k; ++i) sum += double{x[row * k + i]} * y[i * n + col];
        product.push_back(sum);
      }
  }
  launch(device.stream(), grouped_matmul<8>(32, 64, 16), a, b, c);
  double worst = 0;
  for (std::size_t i = 0; i < c.size(); ++i) worst = std::max(worst, largest_error(c[i], expected[i]));
  return worst;
});

}  // namespace gallery
