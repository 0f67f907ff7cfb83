// Exercise 5: attention with a sliding window. Query i sees the last `window` keys up to its own.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tutorial/solutions/solutions.hpp"

namespace solutions {

// [kernel]
auto sliding_window(int bm, int bn, int d, int window) {
  return kernel("sliding_window", [=](In<f32, 2> q, In<f32, 2> k, In<f32, 2> v, Out<f32, 2> o, Scalar<f32> scale) {
    require(q.extent(1) == d, "heads as wide as the kernel was made for");
    same_extents(q, k, v, o);
    Index m = blocks(cdiv(q.extent(0), bm));
    Tile qs = load(q, {m, 0}, {bm, d});
    Tile rows = m * bm + iota({bm, 1}, 0);
    Var top = full<f32>({bm, 1}, std::numeric_limits<f32>::lowest()), norm = zeros<f32>({bm, 1}),
        acc = zeros<f32>({bm, d});
    Index first = maximum(m * bm - (window - 1), 0);  // the first key that the first query of this CTA sees
    for (Index j : range(first / bn, cdiv((m + 1) * bm, bn))) {
      Tile cols = j * bn + iota({1, bn}, 1);
      Tile seen = (cols <= rows) & (cols > rows - window);
      Tile s = where(seen, mma(qs, transpose(load(k, {j, 0}, {bn, d}))) * (scale * log2e), -inf);
      Tile hi = maximum(top, max(s, 1));
      Tile p = exp2(s - hi), shrink = exp2(top - hi);
      norm = norm * shrink + sum(p, 1);
      acc = mma(p, load(v, {j, 0}, {bn, d}), acc * shrink);
      top = hi;
    }
    store(o, {m, 0}, acc / norm);  // each query sees its own key, so norm is not 0
  });
}
// [/kernel]

const Solution sliding_window_solution(5, "sliding_window", [](const Device& device) {
  const int positions = 150, d = 32, window = 20;
  const double scale = 1 / std::sqrt(d);
  const auto q = normal_values(positions * d, 1), k = normal_values(positions * d, 2),
             v = normal_values(positions * d, 3);
  const auto on_device = [&](const std::vector<f32>& values) { return device.tensor<f32>({positions, d}, values); };
  const auto o = device.tensor<f32>({positions, d});
  launch(device.stream(), sliding_window(64, 32, d, window), on_device(q), on_device(k), on_device(v), o, scale);

  std::vector<double> expected;
  for (int row = 0; row < positions; ++row) {
    const int first = std::max(0, row - window + 1);
    std::vector<double> p;
    double norm = 0;
    for (int col = first; col <= row; ++col) {
      double score = 0;
      for (int i = 0; i < d; ++i) score += double{q[row * d + i]} * k[col * d + i];
      p.push_back(std::exp(score * scale));
      norm += p.back();
    }
    for (int i = 0; i < d; ++i) {
      double sum = 0;
      for (int col = first; col <= row; ++col) sum += p[col - first] * v[col * d + i];
      expected.push_back(sum / norm);
    }
  }
  return agree("05_sliding_window", o.to_vector(), expected, 1e-5);
});

}  // namespace solutions
