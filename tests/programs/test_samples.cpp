// The kernels of lessons and gallery with ragged, empty and unequal extents, against plain loops. People copy them, so
// each must be right for every launch that it does not reject.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "common/declared.hpp"
#include "lesson.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/tessera.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"

namespace test_samples {

// Their own checks stay unused; the names belong to this file.
namespace {
#include "common/lessons.hpp"
#define main gallery_main
#include "gallery/adam.cpp"
#include "gallery/batched_matmul.cpp"
#include "gallery/cross_entropy.cpp"
#include "gallery/fft.cpp"
#include "gallery/gallery.cpp"
#include "gallery/grouped_attention.cpp"
#include "gallery/grouped_matmul.cpp"
#include "gallery/histogram.cpp"
#include "gallery/layer_norm_gradient.cpp"
#include "gallery/mixture_of_experts.cpp"
#include "gallery/prefix_sum.cpp"
#include "gallery/rms_norm.cpp"
#include "gallery/rotary_embedding.cpp"
#include "gallery/stencil.cpp"
#include "gallery/swiglu.cpp"
#include "gallery/top_k.cpp"
#include "gallery/transpose.cpp"
#include "gallery/welford.cpp"
#undef main
}  // namespace
#pragma GCC diagnostic pop

namespace {

using namespace tessera;
using Values = std::vector<f32>;
using Exact = std::vector<double>;

/// So small that sums of a few hundred products are far below 2^24 times their error.
Values some(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<f32> uniform(-1, 1);
  Values values(static_cast<std::size_t>(count));
  for (f32& value : values) value = uniform(generator);
  return values;
}
template <class T = f32, std::size_t R>
auto empty(const std::int64_t (&extents)[R]) {
  return test_device().tensor<T>(extents);
}
template <class T, std::size_t R>
auto given(const std::int64_t (&extents)[R], const std::vector<T>& values) {
  auto tensor = test_device().tensor<T>(extents);
  tensor.copy_from(values);
  return tensor;
}
template <class T, int R>
void expect(const Tensor<T, R>& tensor, const Exact& expected, double allowed = 2e-6) {
  const std::vector<T> got = tensor.to_vector();
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double is = static_cast<double>(static_cast<f32>(got[i]));
    if (std::abs(is - expected[i]) <= allowed * std::max(1.0, std::abs(expected[i]))) continue;
    INFO("element " << i << " of " << got.size() << " is " << is << ", not " << expected[i]);
    CHECK(false);
    return;
  }
}
template <class Kernel, class... A>
void run(const Kernel& kernel, const A&... arguments) {
  launch(test_device().stream(), kernel, arguments...);
}
template <class Kernel, class... A>
void refuses(const Kernel& kernel, const A&... arguments) {
  const std::string error = error_of([&] { launch(test_device().stream(), kernel, arguments...); });
  CHECK(says(error, {"launch of kernel '" + kernel.name() + "' refused: it requires"}));
}

/// softmax(q k^T scale) v for each head, over the keys that `sees` allows for each query; 0 if there are none.
Exact attention(const Values& q, const Values& k, const Values& v, int heads, int queries, int keys, int d, double scale,
                const std::function<bool(int, int)>& sees, int group = 1) {
  Exact o;
  for (int head = 0; head < heads; ++head)
    for (int row = 0; row < queries; ++row) {
      const auto of = [&](const Values& x, int key, int i) {
        return double{x[static_cast<std::size_t>((head / group * keys + key) * d + i)]};
      };
      Exact sums(static_cast<std::size_t>(d));
      double norm = 0;
      for (int key = 0; key < keys; ++key) {
        if (!sees(row, key)) continue;
        double score = 0;
        for (int i = 0; i < d; ++i) score += double{q[static_cast<std::size_t>((head * queries + row) * d + i)]} * of(k, key, i);
        const double p = std::exp(score * scale);
        norm += p;
        for (int i = 0; i < d; ++i) sums[static_cast<std::size_t>(i)] += p * of(v, key, i);
      }
      for (const double sum : sums) o.push_back(norm > 0 ? sum / norm : 0);
    }
  return o;
}

Exact product(const Values& a, const Values& b, int batches, int m, int n, int k) {
  Exact c;
  for (int row = 0; row < batches * m; ++row)
    for (int column = 0; column < n; ++column) {
      double sum = 0;
      for (int i = 0; i < k; ++i)
        sum += double{a[static_cast<std::size_t>(row * k + i)]} * b[static_cast<std::size_t>((row / m * k + i) * n + column)];
      c.push_back(sum);
    }
  return c;
}

}  // namespace

TEST_CASE("lessons: elementwise kernels and norms, for any extents", "[cpu][samples]") {
  for (const int n : {0, 1, 63, 64, 65, 300}) {
    INFO(n);
    const Values a = some(n, 1), b = some(n, 2);
    const auto c = empty({n});
    run(lesson1::vector_add(64), given({n}, a), given({n}, b), c);
    Exact sums;
    for (int i = 0; i < n; ++i) sums.push_back(double{a[static_cast<std::size_t>(i)]} + b[static_cast<std::size_t>(i)]);
    expect(c, sums);
  }
  refuses(lesson1::vector_add(64), empty({5}), empty({6}), empty({6}));
  for (const int rows : {0, 1, 5})
    for (const int columns : {0, 1, 63, 64}) {
      INFO(rows << " by " << columns);
      const Values x = some(rows * columns, 3);
      const auto y = empty({rows, columns});
      run(lesson2::softmax(64), given({rows, columns}, x), y);
      Exact expected;
      for (int row = 0; row < rows; ++row) {
        double total = 0;
        const auto e = [&](int i) { return std::exp(double{x[static_cast<std::size_t>(row * columns + i)]}); };
        for (int i = 0; i < columns; ++i) total += e(i);
        for (int i = 0; i < columns; ++i) expected.push_back(e(i) / total);
      }
      expect(y, expected);
    }
  refuses(lesson2::softmax(64), empty({1, 65}), empty({1, 65}));
  refuses(lesson2::softmax(64), empty({1, 64}), empty({1, 63}));
  for (const int rows : {0, 1, 5}) {
    const int columns = 33;
    const Values x = some(rows * columns, 4), weight = some(columns, 5), bias = some(columns, 6);
    Exact normal, rms, expected, expected_rms;
    for (int row = 0; row < rows; ++row) {
      double mean = 0, squares = 0, variance = 0;
      const auto at = [&](int i) { return double{x[static_cast<std::size_t>(row * columns + i)]}; };
      for (int i = 0; i < columns; ++i) mean += at(i) / columns, squares += at(i) * at(i) / columns;
      for (int i = 0; i < columns; ++i) variance += (at(i) - mean) * (at(i) - mean) / columns;
      for (int i = 0; i < columns; ++i) {
        const auto place = static_cast<std::size_t>(i);
        expected.push_back((at(i) - mean) / std::sqrt(variance + 1e-5) * weight[place] + bias[place]);
        expected_rms.push_back(at(i) / std::sqrt(squares + 1e-5) * weight[place]);
      }
    }
    const auto in = given({rows, columns}, x), y = empty({rows, columns}), z = empty({rows, columns});
    const auto w = given({columns}, weight), b = given({columns}, bias);
    run(lesson3::layer_norm(columns), in, w, b, y, 1e-5f);
    expect(y, expected, 5e-6);
    run(gallery::rms_norm(columns), in, w, z, 1e-5f);
    expect(z, expected_rms, 5e-6);
    const auto means = empty({rows, 1}), scales = empty({rows, 1});
    run(gallery::layer_norm_forward(columns, 1e-5), in, w, b, z, means, scales);
    expect(z, expected, 5e-6);
  }
  refuses(lesson3::layer_norm(33), empty({2, 32}), empty({33}), empty({33}), empty({2, 32}), 1e-5f);
  refuses(lesson3::layer_norm(33), empty({2, 33}), empty({32}), empty({33}), empty({2, 33}), 1e-5f);
  refuses(lesson3::layer_norm(33), empty({2, 33}), empty({33}), empty({33}), empty({3, 33}), 1e-5f);
  refuses(gallery::layer_norm_forward(8, 1e-5), empty({2, 8}), empty({7}), empty({8}), empty({2, 8}), empty({2, 1}),
          empty({2, 1}));
  refuses(gallery::layer_norm_forward(8, 1e-5), empty({2, 8}), empty({8}), empty({8}), empty({2, 8}), empty({1, 1}),
          empty({1, 1}));
  refuses(gallery::layer_norm_backward(4, 8), empty({2, 8}), empty({8}), empty({2, 1}), empty({1, 1}), empty({2, 8}),
          empty({2, 8}), empty({1, 8}), empty({1, 8}));
}

TEST_CASE("lessons and gallery: matmuls of any extents", "[cpu][samples]") {
  for (const auto& [m, n, k] : {std::array{0, 5, 3}, {5, 0, 3}, {3, 4, 0}, {1, 1, 1}, {33, 31, 17}, {7, 65, 40}}) {
    INFO(m << "x" << n << "x" << k);
    const Values x = some(m * k, 1), w = some(k * n, 2), bias = some(n, 3);
    Exact expected = product(x, w, 1, m, n, k);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double a = expected[i] + bias[i % static_cast<std::size_t>(n)];
      expected[i] = a / 2 * (1 + std::tanh(0.7978845608028654 * (a + 0.044715 * a * a * a)));
    }
    const auto y = empty({m, n});
    run(lesson4::linear_gelu<f32>(32, 32, 16), given({m, k}, x), given({k, n}, w), given({n}, bias), y);
    expect(y, expected, 5e-6);
  }
  const auto linear = lesson4::linear_gelu<f32>(32, 32, 16);
  refuses(linear, empty({4, 5}), empty({6, 3}), empty({3}), empty({4, 3}));
  refuses(linear, empty({4, 5}), empty({5, 3}), empty({3}), empty({5, 3}));
  refuses(linear, empty({4, 5}), empty({5, 3}), empty({2}), empty({4, 3}));
  for (const auto& [batches, m, n, k] :
       {std::array{0, 2, 3, 4}, {2, 0, 3, 4}, {3, 2, 3, 0}, {1, 1, 1, 1}, {3, 17, 20, 9}}) {
    INFO(batches << " times " << m << "x" << n << "x" << k);
    Values a = some(batches * m * k, 1), b = some(batches * k * n, 2);
    const Values v = some(batches * k * n, 3);
    const auto y = empty({batches, m, n});
    run(gallery::swiglu(16, 16, 16), given({batches, m, k}, a), given({batches, k, n}, b), given({batches, k, n}, v), y);
    Exact gate = product(a, b, batches, m, n, k);
    const Exact up = product(a, v, batches, m, n, k);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    expect(y, gate, 5e-6);
    std::vector<bf16> narrow_a(a.begin(), a.end()), narrow_b(b.begin(), b.end());
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<f32>(narrow_a[i]);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<f32>(narrow_b[i]);
    const auto c = empty({batches, m, n});
    run(gallery::batched_matmul(16, 16, 16), given({batches, m, k}, narrow_a), given({batches, k, n}, narrow_b), c);
    expect(c, product(a, b, batches, m, n, k), 5e-6);
  }
  refuses(gallery::batched_matmul(16, 16, 16), empty<bf16>({2, 3, 4}), empty<bf16>({1, 4, 5}), empty({2, 3, 5}));
  refuses(gallery::batched_matmul(16, 16, 16), empty<bf16>({2, 3, 4}), empty<bf16>({2, 4, 5}), empty({2, 4, 5}));
  refuses(gallery::swiglu(16, 16, 16), empty({2, 3, 4}), empty({1, 4, 5}), empty({1, 4, 5}), empty({2, 3, 5}));
  refuses(gallery::swiglu(16, 16, 16), empty({2, 3, 4}), empty({2, 4, 5}), empty({2, 4, 5}), empty({2, 3, 6}));
  for (const int tokens : {0, 1, 21}) {
    INFO(tokens << " tokens");
    const int experts = 2, inner = 18, n = 20, bm = 16;
    const Values x = some(tokens * inner, 1), w = some(experts * inner * n, 2), weights = some(tokens, 3);
    std::vector<i32> rows, expert_of_tile;
    for (int e = 0; e < experts; ++e) {
      for (int token = e; token < tokens; token += experts) rows.push_back(token);
      while (rows.size() % bm != 0) rows.push_back(-1);
      expert_of_tile.resize(rows.size() / bm, e);
    }
    const auto y = empty({tokens, n});
    run(gallery::mixture_of_experts(bm, 16, 16), given({tokens, inner}, x), given({experts, inner, n}, w),
        given({tokens}, weights), given({std::ssize(rows)}, rows), given({std::ssize(expert_of_tile)}, expert_of_tile), y);
    Exact expected;
    for (int token = 0; token < tokens; ++token)
      for (int column = 0; column < n; ++column) {
        double sum = 0;
        for (int i = 0; i < inner; ++i)
          sum += double{x[static_cast<std::size_t>(token * inner + i)]} *
                 w[static_cast<std::size_t>((token % experts * inner + i) * n + column)];
        expected.push_back(sum * weights[static_cast<std::size_t>(token)]);
      }
    expect(y, expected, 5e-6);
  }
  refuses(gallery::mixture_of_experts(16, 16, 16), empty({4, 8}), empty({2, 8, 5}), empty({3}), empty<i32>({16}),
          empty<i32>({1}), empty({4, 5}));
}

TEST_CASE("lessons and gallery: attention of any number of queries and keys", "[cpu][samples]") {
  constexpr int d = 16;
  const double scale = 0.25;
  const auto check = [&](int heads, int queries, int keys, bool causal) {
    INFO(queries << " queries, " << keys << " keys" << (causal ? ", causal" : ""));
    const Values q = some(heads * queries * d, 1), k = some(heads * keys * d, 2), v = some(heads * keys * d, 3);
    const auto o = empty({heads, queries, d});
    run(lesson5::flash_attention<f32>(32, 16, d, causal), given({heads, queries, d}, q), given({heads, keys, d}, k),
        given({heads, keys, d}, v), o, static_cast<f32>(scale));
    expect(o, attention(q, k, v, heads, queries, keys, d, scale, [=](int row, int key) { return !causal || key <= row; }),
           5e-6);
  };
  for (const auto& [queries, keys] : {std::pair{0, 0}, {0, 5}, {1, 1}, {5, 40}, {33, 33}, {40, 41}}) check(2, queries, keys, true);
  for (const auto& [queries, keys] : {std::pair{0, 3}, {3, 0}, {1, 1}, {10, 6}, {5, 40}, {33, 17}}) check(2, queries, keys, false);
  check(0, 4, 4, false);
  const auto full = lesson5::flash_attention<f32>(32, 16, d, false), causal = lesson5::flash_attention<f32>(32, 16, d, true);
  refuses(causal, empty({2, 10, d}), empty({2, 6, d}), empty({2, 6, d}), empty({2, 10, d}), 1.0f);
  refuses(full, empty({2, 10, d}), empty({2, 6, d}), empty({2, 7, d}), empty({2, 10, d}), 1.0f);
  refuses(full, empty({2, 10, d}), empty({1, 6, d}), empty({1, 6, d}), empty({2, 10, d}), 1.0f);
  refuses(full, empty({2, 10, d}), empty({2, 6, d}), empty({2, 6, d}), empty({2, 9, d}), 1.0f);
  refuses(full, empty({2, 10, d}), empty({2, 6, 8}), empty({2, 6, 8}), empty({2, 10, d}), 1.0f);
  for (const auto& [queries, keys] : {std::pair{0, 3}, {3, 0}, {1, 1}, {33, 17}}) {
    INFO("grouped, " << queries << " queries, " << keys << " keys");
    const Values q = some(4 * queries * d, 1), k = some(2 * keys * d, 2), v = some(2 * keys * d, 3);
    const auto o = empty({4, queries, d});
    run(gallery::grouped_attention(16, 16, d, 2), given({4, queries, d}, q), given({2, keys, d}, k), given({2, keys, d}, v), o);
    expect(o, attention(q, k, v, 4, queries, keys, d, scale, [](int, int) { return true; }, 2), 5e-6);
  }
  refuses(gallery::grouped_attention(16, 16, d, 2), empty({4, 3, d}), empty({2, 3, 8}), empty({2, 3, 8}), empty({4, 3, d}));
}

TEST_CASE("an online softmax that begins with the lowest number is right for any mask", "[cpu][samples]") {
  // A window of five keys: queries from 40 on attend to none in the first tiles, and every seventh query to none at
  // all.
  constexpr int bm = 16, bn = 16, d = 16, positions = 70, window = 5;
  const auto k = kernel("windowed", [=](In<f32, 2> q, In<f32, 2> k, In<f32, 2> v, Out<f32, 2> o) {
    Index m = blocks(cdiv(q.extent(0), bm));
    Tile qs = load(q, {m, 0}, {bm, d}) * 0.25;
    Tile rows = m * bm + iota({bm, 1}, 0);
    Var top = full<f32>({bm, 1}, lesson5::lowest), norm = zeros<f32>({bm, 1}), acc = zeros<f32>({bm, d});
    for (Index j : range(cdiv(k.extent(0), bn))) {
      Tile columns = j * bn + iota({1, bn}, 1);
      Tile seen = (columns <= rows) & (columns > rows - window) & (rows % 7 != 3) & (columns < k.extent(0));
      Tile s = where(seen, mma(qs, transpose(load(k, {j, 0}, {bn, d}))), -inf);
      Tile hi = maximum(top, max(s, 1)), p = exp(s - hi), shrink = exp(top - hi);
      norm = norm * shrink + sum(p, 1);
      acc = mma(p, load(v, {j, 0}, {bn, d}), acc * shrink);
      top = hi;
    }
    store(o, {m, 0}, acc * where(norm == 0, 0, 1 / norm));
  });
  const Values q = some(positions * d, 1), keys = some(positions * d, 2), v = some(positions * d, 3);
  const auto o = empty({positions, d});
  run(k, given({positions, d}, q), given({positions, d}, keys), given({positions, d}, v), o);
  expect(o, attention(q, keys, v, 1, positions, positions, d, 0.25, [](int row, int key) {
           return key <= row && key > row - window && row % 7 != 3;
         }), 5e-6);
}

TEST_CASE("gallery: kernels over lists of tensors, for any extents and numbers of tensors", "[cpu][samples]") {
  const std::vector<std::vector<std::int64_t>> sets = {{}, {0}, {65}, {1, 0, 64, 130}, {0, 0, 63}};
  for (const std::vector<std::int64_t>& counts : sets) {
    INFO(counts.size() << " tensors");
    std::vector<Tensor<f32, 1>> parameters, gradients, means, squares;
    std::vector<Exact> expected;
    for (const std::int64_t n : counts) {
      const Values p = some(n, 1), g = some(n, 2), zeros(static_cast<std::size_t>(n));
      parameters.push_back(given({n}, p)), gradients.push_back(given({n}, g));
      means.push_back(given({n}, zeros)), squares.push_back(given({n}, zeros));
      Exact& updated = expected.emplace_back();
      for (std::size_t i = 0; i < p.size(); ++i) {
        const double mean = 0.1 * g[i], square = 0.001 * g[i] * g[i];
        updated.push_back(p[i] - 1e-3 * (mean / 0.1) / (std::sqrt(square / 0.001) + 1e-8));
      }
    }
    run(gallery::multi_tensor_adam<4>({.size = 64}), parameters, gradients, means, squares, 1e-3f, 0.1f, 0.001f);
    for (std::size_t i = 0; i < parameters.size(); ++i) expect(parameters[i], expected[i], 5e-6);
  }
  refuses(gallery::multi_tensor_adam<4>({.size = 64}), std::vector{empty({5}), empty({4})},
          std::vector{empty({5}), empty({4})}, std::vector{empty({5}), empty({3})}, std::vector{empty({5}), empty({4})},
          1.0f, 1.0f, 1.0f);

  using Size = std::array<int, 3>;  // m, n, k
  for (const std::vector<Size>& sizes :
       std::vector<std::vector<Size>>{{},
                                      {{17, 33, 16}},
                                      {{16, 16, 16}, {1, 70, 5}, {0, 8, 8}, {20, 20, 40}},
                                      {{5, 7, 0}, {33, 0, 4}, {3, 5, 8}}}) {
    INFO(sizes.size() << " products");
    std::vector<Tensor<f32, 2>> a, b, c;
    std::vector<Exact> expected;
    for (const auto& [m, n, k] : sizes) {
      const Values x = some(std::int64_t{m} * k, 1), y = some(std::int64_t{k} * n, 2);
      a.push_back(given({m, k}, x)), b.push_back(given({k, n}, y)), c.push_back(empty({m, n}));
      expected.push_back(product(x, y, 1, m, n, k));
    }
    run(gallery::grouped_matmul<4>(16, 16, 16), a, b, c);
    for (std::size_t i = 0; i < c.size(); ++i) expect(c[i], expected[i], 5e-6);
  }
  refuses(gallery::grouped_matmul<4>(16, 16, 16), std::vector{empty({4, 8})}, std::vector{empty({7, 5})},
          std::vector{empty({4, 5})});
}

TEST_CASE("gallery: other kernels, for any extents", "[cpu][samples]") {
  for (const int n : {0, 1, 63, 65, 130}) {
    INFO(n << " parameters");
    const Values p = some(n, 1), g = some(n, 2), zeros(static_cast<std::size_t>(n));
    const auto parameters = given({n}, p), means = given({n}, zeros), squares = given({n}, zeros);
    run(gallery::adam({.size = 64}), parameters, given({n}, g), means, squares, 1e-3f, 0.1f, 0.001f);
    Exact expected;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double mean = 0.1 * g[i], square = 0.001 * g[i] * g[i];
      expected.push_back(p[i] - 1e-3 * (mean / 0.1) / (std::sqrt(square / 0.001) + 1e-8));
    }
    expect(parameters, expected, 5e-6);
  }
  refuses(gallery::adam({.size = 64}), empty({5}), empty({5}), empty({4}), empty({5}), 1.0f, 1.0f, 1.0f);
  for (const auto& [rows, columns] : {std::pair{0, 5}, {1, 1}, {3, 63}, {2, 64}}) {
    INFO("cross entropy of " << rows << " by " << columns);
    const Values x = some(rows * columns, 1);
    std::vector<i32> targets;
    for (int row = 0; row < rows; ++row) targets.push_back(row * 17 % columns);
    const auto loss = empty({rows});
    const auto gradient = empty({rows, columns});
    run(gallery::cross_entropy(64), given({rows, columns}, x), given({rows}, targets), loss, gradient);
    Exact losses, gradients;
    for (int row = 0; row < rows; ++row) {
      const auto at = [&](int i) { return double{x[static_cast<std::size_t>(row * columns + i)]}; };
      const int target = targets[static_cast<std::size_t>(row)];
      double total = 0;
      for (int i = 0; i < columns; ++i) total += std::exp(at(i));
      losses.push_back(std::log(total) - at(target));
      for (int i = 0; i < columns; ++i) gradients.push_back(std::exp(at(i)) / total - (i == target));
    }
    expect(loss, losses);
    expect(gradient, gradients);
  }
  refuses(gallery::cross_entropy(64), empty({3, 8}), empty<i32>({2}), empty({2}), empty({3, 8}));
  for (const int rows : {0, 1, 3}) {
    const int n = 16;
    const Values re = some(rows * n, 1), im = some(rows * n, 2);
    const auto out_re = empty({rows, n}), out_im = empty({rows, n});
    run(gallery::fft(n), given({rows, n}, re), given({rows, n}, im), out_re, out_im);
    Exact expected_re, expected_im;
    for (int row = 0; row < rows; ++row)
      for (int k = 0; k < n; ++k) {
        std::complex<double> sum;
        for (int i = 0; i < n; ++i) {
          const auto place = static_cast<std::size_t>(row * n + i);
          sum += std::complex<double>(re[place], im[place]) * std::polar(1., -2 * std::numbers::pi * (i * k % n) / n);
        }
        expected_re.push_back(sum.real()), expected_im.push_back(sum.imag());
      }
    expect(out_re, expected_re, 5e-6);
    expect(out_im, expected_im, 5e-6);
  }
  for (const int n : {0, 1, 63, 64, 65}) {
    INFO("sums and counts of " << n);
    std::vector<u8> values;
    for (int i = 0; i < n; ++i) values.push_back(static_cast<u8>(i * 37));
    const auto counts = given({100}, std::vector<i32>(100));
    run(gallery::histogram(100, 32), given({n}, values), counts);
    Exact expected(100);
    for (const u8 value : values)
      if (value < 100) ++expected[value];
    expect(counts, expected);
    const int parts = (n + 31) / 32;
    const Values x = some(n, 1);
    const auto in = given({n}, x), sums = empty({parts}), ahead = empty({parts}), y = empty({n});
    run(gallery::sums_of_parts(32), in, sums);
    run(gallery::sums_ahead(8), sums, ahead);
    run(gallery::sums_within(32), in, ahead, y);
    Exact running;
    for (const f32 value : x) running.push_back((running.empty() ? 0 : running.back()) + value);
    expect(y, running, 5e-6);
  }
  refuses(gallery::sums_of_parts(32), empty({65}), empty({2}));
  refuses(gallery::sums_within(32), empty({65}), empty({2}), empty({65}));
  for (const auto& [m, n] : {std::pair{0, 3}, {3, 0}, {1, 1}, {17, 33}, {33, 15}}) {
    INFO(m << " by " << n);
    const Values x = some(m * n, 1);
    const auto at = [&, m = m, n = n](int i, int j) -> double {
      return i < 0 || i >= m || j < 0 || j >= n ? 0 : x[static_cast<std::size_t>(i * n + j)];
    };
    const auto columns = empty({n, m}), warmer = empty({m, n});
    run(gallery::transposed(16, 16), given({m, n}, x), columns);
    run(gallery::heat(16, 16), given({m, n}, x), warmer, 0.2f);
    Exact transposed, heated, means, variances;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) transposed.push_back(at(i, j));
    for (int i = 0; i < m; ++i) {
      double mean = 0, variance = 0;
      for (int j = 0; j < n; ++j) {
        heated.push_back(at(i, j) + 0.2 * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4 * at(i, j)));
        mean += at(i, j) / n;
      }
      for (int j = 0; j < n; ++j) variance += (at(i, j) - mean) * (at(i, j) - mean) / n;
      means.push_back(mean), variances.push_back(variance);
    }
    expect(columns, transposed);
    expect(warmer, heated);
    if (n == 0) continue;  // the mean of nothing is NaN
    const auto mean = empty({m}), variance = empty({m});
    run(gallery::welford(4, 16), given({m, n}, x), mean, variance);
    expect(mean, means, 5e-6);
    expect(variance, variances, 5e-6);
  }
  for (const auto& [rows, columns] : {std::pair{0, 5}, {1, 3}, {5, 31}, {4, 32}}) {
    INFO("top 3 of " << rows << " by " << columns);
    const Values x = some(rows * columns, 1);
    const auto values = empty({rows, 3});
    const auto places = empty<i32>({rows, 3});
    run(gallery::top_k(32, 3), given({rows, columns}, x), values, places);
    Exact expected, at;
    for (int row = 0; row < rows; ++row) {
      std::vector<int> order(static_cast<std::size_t>(columns));
      std::iota(order.begin(), order.end(), 0);
      const auto element = [&, columns = columns](int i) { return x[static_cast<std::size_t>(row * columns + i)]; };
      std::ranges::stable_sort(order, std::greater(), element);
      for (std::size_t i = 0; i < 3; ++i) expected.push_back(element(order[i])), at.push_back(order[i]);
    }
    expect(values, expected);
    expect(places, at);
  }
  refuses(gallery::top_k(32, 3), empty({4, 8}), empty({3, 3}), empty<i32>({3, 3}));
  for (const int positions : {0, 1, 3}) {
    const Values x = some(positions * 2 * 8, 1);
    const auto y = empty({positions, 2, 8});
    run(gallery::rotary_embedding(2, 8, 10000), given({positions, 2, 8}, x), y);
    Exact expected(x.size());
    for (int row = 0; row < positions * 2; ++row)
      for (int i = 0; i < 4; ++i) {
        const double angle = row / 2 * std::pow(10000., -2. * i / 8);
        const auto a = static_cast<std::size_t>(row * 8 + i), b = a + 4;
        expected[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
        expected[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
      }
    expect(y, expected, 1e-5);
  }
}

}  // namespace test_samples
