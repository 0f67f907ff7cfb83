// Grouped-query attention: several query heads share one head of keys and values (Ainslie et al., 2023). It takes any
// number of keys: those of the last tile that lie beyond the end get a score of -inf. The running maximum starts at the
// lowest finite number, which is correct for any mask; a query that sees no key gets a result of 0.
#include <cmath>
#include <limits>

#include "gallery/gallery.hpp"

namespace gallery {

constexpr f32 lowest = std::numeric_limits<f32>::lowest();

auto grouped_attention(int bm, int bn, int d, int group) {
  return kernel("grouped_attention", [=](In<f32, 3> q, In<f32, 3> k, In<f32, 3> v, Out<f32, 3> o) {
    require((q.extent(2) == d) & (k.extent(2) == d), "heads as wide as the kernel was made for");
    require(q.extent(0) == k.extent(0) * group, "a head of keys for each group of heads of queries");
    same_extents(k, v);
    same_extents(q, o);
    auto [m, head] = blocks(cdiv(q.extent(1), bm), q.extent(0));
    Tile qs = squeeze(load(q, {head, m, 0}, {1, bm, d}), 0) * (log2e / std::sqrt(d));
    Index shared = head / group;
    Var top = full<f32>({bm, 1}, lowest), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});
    for (Index n : range(cdiv(k.extent(1), bn))) {
      Tile ks = squeeze(load(k, {shared, n, 0}, {1, bn, d}), 0), vs = squeeze(load(v, {shared, n, 0}, {1, bn, d}), 0);
      Tile there = n * bn + iota({1, bn}, 1) < k.extent(1);
      Tile score = where(there, mma(qs, transpose(ks), zeros<f32>({bm, bn})), -inf);
      Tile highest = maximum(top, max(score, 1)), p = exp2(score - highest), shrink = exp2(top - highest);
      norm = norm * shrink + sum(p, 1);
      acc = mma(p, vs, acc * shrink);
      top = highest;
    }
    store(o, {head, m, 0}, expand_dims(where(norm == 0, 0, acc / norm), 0));
  });
}

const Example grouped_attention_example("grouped_attention", 5e-6, [](const Device& device) {
  const int heads = 4, group = 2, queries = 37, keys = 75, d = 32;
  const auto q = normal_values(heads * queries * d, 1), k = normal_values(heads / group * keys * d, 2);
  const auto v = normal_values(heads / group * keys * d, 3);
  const auto o = device.tensor<f32>({heads, queries, d});
  launch(device.stream(), grouped_attention(32, 32, d, group), tensor_of(device, {heads, queries, d}, q),
         tensor_of(device, {heads / group, keys, d}, k), tensor_of(device, {heads / group, keys, d}, v), o);

  std::vector<double> expected;
  for (int row = 0; row < heads * queries; ++row) {
    const int first = row / queries / group * keys;  // first row of its keys and values
    std::vector<double> p(keys), sums(d);
    double norm = 0;
    for (int j = 0; j < keys; ++j) {
      for (int i = 0; i < d; ++i) p[j] += double{q[row * d + i]} * k[(first + j) * d + i] / std::sqrt(d);
      norm += p[j] = std::exp(p[j]);
    }
    for (int j = 0; j < keys; ++j)
      for (int i = 0; i < d; ++i) sums[i] += p[j] / norm * v[(first + j) * d + i];
    expected.insert(expected.end(), sums.begin(), sums.end());
  }
  return largest_error(o, expected);
});

}  // namespace gallery
