// Lesson 5: loop-carried values. o = softmax(q k^T scale) v for each head, without ever storing the whole of q k^T.
//
// A CTA owns bm queries and iterates over the keys and values, bn at a time. Three Vars are carried from one iteration
// to the next: the largest score so far (top), the sum of exp(score - top) (norm), and the same sum weighted by v
// (acc). Whenever a larger score appears, the previous sums are rescaled to it. This is the online softmax (Dao et al.,
// 2022).
//
// top starts at the lowest finite number and not at -inf. Under some masks, such as a sliding window, a query sees no
// key of its first tile. Then score - top would be -inf - (-inf), a NaN that stays. Starting at the lowest finite
// number is correct for any mask. A query that sees no key at all has a norm of 0, and its row of o is 0.
//
// There are two kinds of decisions. `causal` is a C++ bool, known when the kernel is traced: ?: and if select what the
// kernel contains, and two different kernels result. Whether a query sees a key is known only inside the kernel, for
// each element of a tile: that takes where(condition, a, b). `if (tile)` does not compile.
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include <tessera/tessera.hpp>
#include "lesson.hpp"

using namespace tessera;

constexpr f32 lowest = std::numeric_limits<f32>::lowest();

template <Element T>
auto flash_attention(int bm, int bn, int d, bool causal) {
  return kernel("flash_attention", [=](In<T, 3> q, In<T, 3> k, In<T, 3> v, Out<T, 3> o, Scalar<f32> scale) {
    require((q.extent(2) == d) & (k.extent(2) == d), "heads as wide as the kernel was made for");
    require(q.extent(0) == k.extent(0), "as many heads of keys as of queries");
    if (causal) require(q.extent(1) <= k.extent(1), "a key for each query, as query i sees the keys 0 to i");
    same_extents(k, v);
    same_extents(q, o);
    auto [m, head] = blocks(cdiv(q.extent(1), bm), q.extent(0));
    Tile qs = reshape(load(q, {head, m, 0}, {1, bm, d}), {bm, d});
    Tile rows = m * bm + iota({bm, 1}, 0);
    Var top = full<f32>({bm, 1}, lowest), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});

    Tile length = causal ? Index((m + 1) * bm) : k.extent(1);  // no query of this CTA sees a later key
    for (Index j : range(cdiv(length, bn))) {
      Tile cols = j * bn + iota({1, bn}, 1);
      Tile seen = causal ? Tile(cols <= rows) : Tile(cols < k.extent(1));
      Tile ks = reshape(load(k, {head, j, 0}, {1, bn, d}), {bn, d});
      Tile vs = reshape(load(v, {head, j, 0}, {1, bn, d}), {bn, d});

      // exp(x) is exp2(x * log2e), and the multiplication by log2e is folded into the scale.
      Tile s = where(seen, mma(qs, transpose(ks), zeros<f32>({bm, bn})) * (scale * log2e), -inf);
      Tile hi = maximum(top, max(s, 1));  // maximum(a, b) is elementwise; max(x, axis) reduces
      Tile p = exp2(s - hi), shrink = exp2(top - hi);
      norm = norm * shrink + sum(p, 1);
      acc = mma(cast<T>(p), vs, acc * shrink);
      top = hi;
    }
    Tile inverse = where(norm == 0, 0, 1 / norm);
    store(o, {head, m, 0}, reshape(cast<T>(acc * inverse), {1, bm, d}));
  });
}

constexpr int heads = 3, width = 64;
const double scale = 1 / std::sqrt(width);

/// The same in plain C++ and in double precision: first all scores of a query, then their softmax.
template <Element T>
std::vector<double> reference(const std::vector<T>& q, const std::vector<T>& k, const std::vector<T>& v, int positions,
                              bool causal) {
  const auto at = [=](const std::vector<T>& x, int head, int position, int i) -> double {
    return static_cast<f32>(x[(head * positions + position) * width + i]);
  };
  std::vector<double> o;
  for (int head = 0; head < heads; ++head)
    for (int row = 0; row < positions; ++row) {
      std::vector<double> p(causal ? row + 1 : positions);
      double norm = 0;
      for (int col = 0; col < std::ssize(p); ++col) {
        double score = 0;
        for (int i = 0; i < width; ++i) score += at(q, head, row, i) * at(k, head, col, i);
        norm += p[col] = std::exp(score * scale);
      }
      for (int i = 0; i < width; ++i) {
        double sum = 0;
        for (int col = 0; col < std::ssize(p); ++col) sum += p[col] * at(v, head, col, i);
        o.push_back(sum / norm);
      }
    }
  return o;
}

template <Element T>
std::vector<T> random_values(int count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<f32> uniform(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) value = T(uniform(generator));
  return values;
}

template <Element T>
bool correct(const Device& device, const char* type, int positions, bool causal, double allowed) {
  const int count = heads * positions * width;
  const auto q = random_values<T>(count, 1), k = random_values<T>(count, 2), v = random_values<T>(count, 3);

  const std::array<std::int64_t, 3> extents{heads, positions, width};
  Tensor<T, 3> device_q(device, extents), device_k(device, extents), device_v(device, extents),
      device_o(device, extents);
  device_q.copy_from(q);
  device_k.copy_from(k);
  device_v.copy_from(v);
  launch(device.stream(), flash_attention<T>(64, 32, width, causal), device_q, device_k, device_v, device_o, scale);
  const auto o = device_o.to_vector();

  const auto expected = reference(q, k, v, positions, causal);
  double worst = 0;
  for (std::size_t i = 0; i < o.size(); ++i) {
    const double error = std::abs(static_cast<f32>(o[i]) - expected[i]);
    if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
  }
  std::printf("05_flash_attention: %d positions, %s, %s: max error %.1e (allowed %.0e)\n", positions,
              causal ? "causal" : "full", type, worst, allowed);
  return worst <= allowed;
}

int main(int argc, char** argv) {
  const auto graph = [] { return to_string(flash_attention<bf16>(64, 32, width, true).graph()); };
  return run_lesson(argc, argv, "05_flash_attention", graph, [] {
    const Device device = Device::best();
    bool ok = true;
    for (int positions : {37, 200})
      for (bool causal : {true, false}) {
        // v and o are below 1. bf16 has 8 bits of precision: rounding p costs up to 2^-8, and rounding o another 2^-9.
        ok &= correct<bf16>(device, "bf16", positions, causal, 6e-3);
        // f32 has 24 bits. A few dozen roundings, most of them of numbers far below 1, leave more than 18 of them.
        ok &= correct<f32>(device, "f32", positions, causal, 3e-6);
      }
    return ok;
  });
}
