// Warp-specialized matmuls of tf32: operands are f32 in memory and are converted on the way to where wgmma reads them.
// On any device compared with exact sums; the plan's steps; and how planted faults are reported.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <random>

#include "codegen/generate.hpp"
#include "codegen/kernel_source.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/remarks.hpp"
#include "emulator/emulator.hpp"
#include "graph/math.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/devices.hpp"
#include "support/emulating.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"
#include "support/tensors.hpp"

namespace test_warp_specialized_tf32 {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

using F = In<f32, 2>;
using Sums = Out<f32, 2>;

/// For sm_90a, where the right operand w [k,n], parameter 1, is contiguous along k.
Plan plan_of(const Graph& traced, const Changes& change = {}) {
  return plan_with(traced, [&](Variant& variant) {
    variant.tensors[1].contiguous_axis = 0;
    if (change) change(variant);
  });
}
using ::why_not;
std::string why_not(const Graph& traced, const Changes& change = {}) { return why_not(plan_of(traced, change)); }
Changes along(std::size_t tensor, int axis) {
  return [=](Variant& variant) { variant.tensors[tensor].contiguous_axis = static_cast<std::int8_t>(axis); };
}

template <class O>
auto plain(MatmulTiles tiles) {
  return kernel("plain", [=](F x, F w, Out<O, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    store(y, {m, n}, cast<O>(kernels::matmul<tf32>(x, w, m, n, tiles)));
  });
}

// Numbers that tf32 rounds: ties to even, up and down. They become multiples of 2^-10, so that sums of them times small
// whole numbers are exact in any order.
constexpr float uneven[] = {1 + 0x1p-11f, 1 + 0x3p-11f, -1 - 0x1p-11f - 0x1p-20f, 1 - 0x1p-13f, -2 - 0x3p-11f, 0.5f};
constexpr float whole[] = {-1, 0, 1, 2};

struct Sizes {
  int m, n, k;
  bool uneven_right = false;  ///< which operand has such numbers; the other has whole ones
  int x_gap = 0, w_gap = 0;   ///< elements after each row in memory
  bool x_transposed = false;  ///< rows of x run along m
  bool w_transposed = true;   ///< rows of w run along k
  unsigned seed = 0;
};

/// Operands, and the exact product of their converted values.
class Problem {
 public:
  explicit Problem(const Sizes& of) : of_(of) {
    std::mt19937 rng(static_cast<unsigned>(of.m * 31 + of.n * 7 + of.k) + of.seed);
    const auto numbers = [&](std::vector<float>& values, int count, bool rounded) {
      for (int i = 0; i < count; ++i)
        values.push_back(rounded ? uneven[rng() % std::size(uneven)] : whole[rng() % std::size(whole)]);
    };
    numbers(a, of.m * of.k, !of.uneven_right);
    numbers(b, of.k * of.n, of.uneven_right);
    sums_ = matmul([&](int i, int l) { return double{a_at(i, l)}; });
    x = matrix(a, of.m, of.k, of.x_transposed, of.x_gap);
    w = matrix(b, of.k, of.n, of.w_transposed, of.w_gap);
  }

  Tensor<f32, 2> x, w;
  std::vector<float> a, b;  ///< [m,k] and [k,n]

  float a_at(int i, int l) const { return a[static_cast<std::size_t>(i) * of_.k + l]; }
  double sum(int i, int j) const { return sums_[at(i, j)]; }
  Changes change() const {
    return [of = of_](Variant& variant) {
      variant.tensors[0].contiguous_axis = of.x_transposed ? 0 : 1;
      variant.tensors[1].contiguous_axis = of.w_transposed ? 0 : 1;
    };
  }
  /// With another left operand.
  std::vector<double> matmul(const std::function<double(int, int)>& left) const {
    std::vector<double> sums(static_cast<std::size_t>(of_.m) * of_.n);
    for (int i = 0; i < of_.m; ++i)
      for (int l = 0; l < of_.k; ++l) {
        const double x = math::round_to_tf32(static_cast<float>(left(i, l)));
        for (int j = 0; j < of_.n; ++j)
          sums[at(i, j)] += x * math::round_to_tf32(b[static_cast<std::size_t>(l) * of_.n + j]);
      }
    return sums;
  }
  /// Empty, or the first element of y that differs from `expected` for its row, column and sum, rounded to its type.
  template <class O>
  std::string difference(const Tensor<O, 2>& y, const std::function<double(int, int, double)>& expected,
                         double tolerance = 0) const {
    const std::vector<O> got = y.to_vector();
    for (int i = 0; i < of_.m; ++i)
      for (int j = 0; j < of_.n; ++j) {
        const double exact = expected(i, j, sums_[at(i, j)]), found = double{static_cast<float>(got[at(i, j)])},
                     rounded = double{static_cast<float>(O(static_cast<float>(exact)))};
        if (!(std::abs(found - rounded) <= tolerance * (1 + std::abs(exact))))
          return fmt::format("[{},{}] is {}, not {}", i, j, found, rounded);
      }
    return {};
  }

 private:
  std::size_t at(int i, int j) const { return static_cast<std::size_t>(i) * of_.n + j; }
  Tensor<f32, 2> matrix(const std::vector<float>& values, int rows, int columns, bool transposed, int gap) {
    const int stride = (transposed ? rows : columns) + gap;
    std::vector<f32> memory(static_cast<std::size_t>(transposed ? columns : rows) * stride, 1000);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        memory[static_cast<std::size_t>(transposed ? j * stride + i : i * stride + j)] =
            values[static_cast<std::size_t>(i) * columns + j];
    memory_.push_back(tensor<f32, 1>({static_cast<std::int64_t>(memory.size())}, memory));
    return {test_device(), memory_.back().data(), {rows, columns}, {transposed ? 1 : stride, transposed ? stride : 1}};
  }

  Sizes of_;
  std::vector<double> sums_;
  std::vector<Tensor<f32, 1>> memory_;
};

template <class O>
Tensor<O, 2> full_of(int rows, int columns) {
  return tensor<O, 2>({rows, columns}, std::vector<O>(static_cast<std::size_t>(rows) * columns, O(99.0f)));
}
std::vector<float> whole_numbers(int count, int modulus) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) result[static_cast<std::size_t>(i)] = static_cast<float>(i % modulus - modulus / 2);
  return result;
}
const auto itself = [](int, int, double sum) { return sum; };

template <class O = f32>
void check_plain(const MatmulTiles& tiles, const Sizes& of, bool by_roles = true) {
  INFO(fmt::format("tiles of [{},{}] by {}, {}x{}x{} to {}", tiles.m, tiles.n, tiles.k, of.m, of.n, of.k,
                   name(element_type<O>)));
  const auto k = plain<O>(tiles);
  const Problem problem(of);
  CHECK((why_not(k.graph(), problem.change()) == "") == by_roles);
  const Tensor<O, 2> y = full_of<O>(of.m, of.n);
  launch(test_device().stream(), k, problem.x, problem.w, y);
  CHECK(problem.difference(y, itself) == "");
}

}  // namespace

TEST_CASE("warp-specialized matmul: tf32, every tile", "[cpu]") {
  Cases cases(28);
  int number = 0;
  for (const int m : {64, 128, 256})
    for (const int n : {64, 96, 128, 192, 256})
      for (const int k : {32, 64}) {
        if ((m == 256 && n == 256) || (m == 256 && n > 64 && k == 64) || cases.skip()) continue;
        const Sizes of{m + 40, n + 24, 2 * k + 8, number % 2 == 1};
        number++ % 3 ? check_plain<f32>({m, n, k}, of) : check_plain<bf16>({m, n, k}, of);
      }
  check_plain({64, 64, 128}, {72, 136, 200});
  check_plain({64, 128, 96}, {72, 136, 200, true});  // three panels
}

TEST_CASE("warp-specialized matmul: tf32, fewer rows than tiles, and many k-iterations", "[cpu]") {
  Cases cases(14);
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 32}, {128, 256, 32}, {64, 128, 64}})
    for (const Sizes& of : {Sizes{1, 72, 200}, {16, 8, 136, true}, {56, 200, 4}}) {
      if (!cases.skip()) check_plain(tiles, of);
    }
  check_plain({64, 64, 32}, {64 * 7, 64 * 3, 32});
  check_plain({64, 64, 32}, {72, 40, 32 * 37 + 12});  // few CTAs split them
  check_plain({128, 128, 32}, {136, 40, 32 * 37 + 12, true});
  check_plain({64, 128, 64}, {40, 128, 64 * 8});
  check_plain({128, 192, 32}, {128, 192, 32, true});
}

TEST_CASE("warp-specialized matmul: tf32 that is not TMA-addressable, which threads convert", "[cpu]") {
  check_plain({64, 64, 32}, {.m = 72, .n = 136, .k = 144, .x_gap = 1});
  check_plain({64, 128, 32}, {.m = 80, .n = 136, .k = 99, .uneven_right = true, .w_gap = 2});
  check_plain({128, 128, 64}, {.m = 136, .n = 80, .k = 131, .x_gap = 2, .w_gap = 1});
  check_plain({128, 192, 32}, {.m = 131, .n = 67, .k = 71, .uneven_right = true});
  check_plain<bf16>({128, 256, 32}, {.m = 136, .n = 264, .k = 70});
}

TEST_CASE("warp-specialized matmul: tf32 that is contiguous along m or n", "[cpu]") {
  // Threads read a left operand along k, like a computed one.
  check_plain({64, 64, 32}, {.m = 72, .n = 136, .k = 136, .x_transposed = true});
  check_plain({128, 128, 64}, {.m = 136, .n = 80, .k = 200, .x_transposed = true});
  check_plain({128, 256, 32}, {.m = 136, .n = 80, .k = 99, .x_gap = 1, .x_transposed = true});
  // The same of a right operand, which becomes the left one.
  check_plain({64, 64, 32}, {.m = 72, .n = 136, .k = 136, .w_transposed = false});
  check_plain({256, 128, 32}, {.m = 264, .n = 80, .k = 200, .w_transposed = false});
  // Not both.
  check_plain({64, 64, 32},
              {.m = 72, .n = 136, .k = 136, .uneven_right = true, .x_transposed = true, .w_transposed = false}, false);
}

TEST_CASE("warp-specialized matmul: tf32 of infinities, NaN, and numbers near them", "[cpu]") {
  const int m = 64, n = 72, k = 40;
  const float most = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  const float special[] = {most, -most, infinity, -infinity, std::nanf(""), 0x1p-126f, -0x1p-149f, 0x1.ffcp127f};
  std::vector<f32> x(static_cast<std::size_t>(m * k)), w(static_cast<std::size_t>(k * n), 0);
  for (int i = 0; i < m; ++i) x[static_cast<std::size_t>(i * k + i % k)] = special[i % 8];
  for (int l = 0; l < k; ++l)
    for (int j = 0; j < n; ++j) w[static_cast<std::size_t>(j * k + l)] = l % 9 == j % 9 ? 1.0f : -0.5f;
  const auto y = full_of<f32>(m, n);
  const auto xs = tensor<f32, 2>({m, k}, x);
  const auto ws = tensor<f32, 1>({k * n}, w);
  launch(test_device().stream(), plain<f32>({64, 64, 32}), xs, Tensor<f32, 2>(test_device(), ws.data(), {k, n}, {1, k}),
         y);
  const std::vector<f32> got = y.to_vector();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      const int l = i % k;
      const float expected = math::round_to_tf32(special[i % 8]) * w[static_cast<std::size_t>(j * k + l)],
                  found = got[static_cast<std::size_t>(i * n + j)];
      INFO(i << "," << j << ": " << found << ", not " << expected);
      REQUIRE(((found == expected) || (std::isnan(found) && std::isnan(expected))));
    }
}

TEST_CASE("warp-specialized matmul: tf32, epilogues", "[cpu]") {
  const MatmulTiles tiles{64, 128, 32};
  const Sizes of{.m = 136, .n = 264, .k = 136};
  const Problem problem(of);
  const std::vector<float> b = whole_numbers(of.n, 9), s = whole_numbers(of.m, 5),
                           before = whole_numbers(of.m * of.n, 17);
  const auto at = [&](int i, int j) { return static_cast<std::size_t>(i) * of.n + j; };
  const auto epilogue = kernel("epilogue", [=](F x, F w, In<f32, 1> bias, F scale, InOut<f32, 2> z, Out<bf16, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const Tile sums = kernels::matmul<tf32>(x, w, m, n, tiles);
    const Tile old = load(z, {m, n}, {tiles.m, tiles.n});
    const Tile scaled = sums * load(scale, {m, 0}, {tiles.m, 1}) + load(bias, {n}, {tiles.n});
    store(y, {m, n}, cast<bf16>(scaled));
    store(z, {m, n}, old + scaled);
  });
  CHECK(why_not(epilogue.graph(), problem.change()) == "");
  const auto y = full_of<bf16>(of.m, of.n);
  const auto z = tensor<f32, 2>({of.m, of.n}, before);
  launch(test_device().stream(), epilogue, problem.x, problem.w, tensor<f32, 1>({of.n}, b),
         tensor<f32, 2>({of.m, 1}, s), z, y);
  const auto scaled = [&](int i, int j, double sum) {
    return sum * s[static_cast<std::size_t>(i)] + b[static_cast<std::size_t>(j)];
  };
  CHECK(problem.difference(y, scaled) == "");
  CHECK(problem.difference(z, [&](int i, int j, double sum) { return scaled(i, j, sum) + before[at(i, j)]; }) == "");

  const auto masked = kernel("masked", [=](F x, F w, Sums y, Sums top) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const Tile sums = kernels::matmul<tf32>(x, w, m, n, tiles);
    const Tile rows = m * tiles.m + iota({tiles.m, 1}, 0), columns = n * tiles.n + iota({1, tiles.n}, 1);
    store(y, {m, n}, where(columns <= rows, gelu_tanh(sums), 7.0f));
    store(top, {m, n}, max(sums, 1));
  });
  CHECK(why_not(masked.graph(), problem.change()) == "");
  const auto u = full_of<f32>(of.m, of.n), top = full_of<f32>(of.m, 3);
  launch(test_device().stream(), masked, problem.x, problem.w, u, top);
  const auto gelu = [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); };
  CHECK(problem.difference(u, [&](int i, int j, double sum) { return j <= i ? gelu(sum) : 7.0; }, 1e-6) == "");
  const std::vector<f32> tops = top.to_vector();
  for (int i = 0; i < of.m; ++i) {
    double most = -1e9;
    for (int j = 0; j < tiles.n; ++j) most = std::max(most, problem.sum(i, j));
    REQUIRE(tops[static_cast<std::size_t>(i) * 3] == most);
  }

  const auto started = kernel("started", [=](F x, F w, F start, Sums y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = load(start, {m, n}, {tiles.m, tiles.n});
    for (Index i : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(cast<tf32>(load(x, {m, i}, {tiles.m, tiles.k})), cast<tf32>(load(w, {i, n}, {tiles.k, tiles.n})), acc);
    store(y, {m, n}, acc);
  });
  CHECK(why_not(started.graph(), problem.change()) == "");
  launch(test_device().stream(), started, problem.x, problem.w, tensor<f32, 2>({of.m, of.n}, before), u);
  CHECK(problem.difference(u, [&](int i, int j, double sum) { return sum + before[at(i, j)]; }) == "");
}

TEST_CASE("warp-specialized matmul: tf32, several in one loop", "[cpu]") {
  const MatmulTiles tiles{64, 128, 32};
  const Sizes of{.m = 136, .n = 136, .k = 136};
  const Problem gate(of), up({.m = of.m, .n = of.n, .k = of.k, .seed = 1});
  const auto gated = kernel("gated", [=](F x, F w, F v, Sums y, Sums z) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var a = zeros<f32>({tiles.m, tiles.n}), b = zeros<f32>({tiles.m, tiles.n});
    for (Index i : range(cdiv(x.extent(1), tiles.k))) {
      const Tile left = cast<tf32>(load(x, {m, i}, {tiles.m, tiles.k}));
      a = mma(left, cast<tf32>(load(w, {i, n}, {tiles.k, tiles.n})), a);
      b = mma(left, cast<tf32>(load(v, {i, n}, {tiles.k, tiles.n})), b);
    }
    store(y, {m, n}, a);
    store(z, {m, n}, b);
  });
  const Plan plan = plan_of(gated.graph(), along(2, 0));
  CHECK(why_not(plan) == "");
  CHECK(plan.tensor_maps.size() == 5);  // the shared operand is loaded once
  const auto y = full_of<f32>(of.m, of.n), z = full_of<f32>(of.m, of.n);
  launch(test_device().stream(), gated, gate.x, gate.w, up.w, y, z);
  CHECK(gate.difference(y, itself) == "");
  const std::vector<double> other = [&] {
    Problem of_both(of);
    of_both.b = up.b;
    return of_both.matmul([&](int i, int l) { return double{gate.a_at(i, l)}; });
  }();
  CHECK(gate.difference(z, [&](int i, int j, double) { return other[static_cast<std::size_t>(i) * of.n + j]; }) == "");
}

// For one tensor, operands that are multiplied as tf32 are converted, and elements used in other ops are not.
TEST_CASE("warp-specialized matmul: one tile, converted and unchanged", "[cpu][sanitize]") {
  const MatmulTiles tiles{64, 64, 32};
  const Sizes of{.m = 72, .n = 72, .k = 136};
  const Problem problem(of);
  const auto both = kernel("both", [=](F x, F w, Sums y, Sums z) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var a = zeros<f32>({tiles.m, tiles.n}), b = zeros<f32>({tiles.m, tiles.n});
    for (Index i : range(cdiv(x.extent(1), tiles.k))) {
      const Tile left = load(x, {m, i}, {tiles.m, tiles.k});
      const Tile right = cast<tf32>(load(w, {i, n}, {tiles.k, tiles.n}));
      a = mma(cast<tf32>(left), right, a);
      b = mma(cast<tf32>(left * 2.0f - cast<f32>(cast<bf16>(left))), right, b);
    }
    store(y, {m, n}, a);
    store(z, {m, n}, b);
  });
  const Plan plan = plan_of(both.graph());
  CHECK(why_not(plan) == "");
  std::vector<std::pair<int, bool>> maps;
  for (const TensorMap& map : plan.tensor_maps)
    if (!map.store) maps.emplace_back(map.tensor.argument, map.tensor.to_tf32);
  std::ranges::sort(maps);
  CHECK(maps == std::vector<std::pair<int, bool>>{{0, false}, {0, true}, {1, true}});
  const auto y = full_of<f32>(of.m, of.n), z = full_of<f32>(of.m, of.n);
  launch(test_device().stream(), both, problem.x, problem.w, y, z);
  CHECK(problem.difference(y, itself) == "");
  const std::vector<double> other = problem.matmul([&](int i, int l) {
    const float x = problem.a_at(i, l);
    return double{x * 2.0f - static_cast<float>(bf16(x))};
  });
  CHECK(problem.difference(z, [&](int i, int j, double) { return other[static_cast<std::size_t>(i) * of.n + j]; }) ==
        "");
}

namespace {

/// y = make(a tile of x, of z, a row of gamma) w.
template <class L, class Make>
auto computed(MatmulTiles tiles, const Make& make) {
  return kernel("computed", [=](In<L, 2> x, F w, F z, In<f32, 1> gamma, Sums y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(w.extent(0), tiles.k))) {
      const Tile<f32, 2> left =
          make(Tile<f32, 2>(cast<f32>(load(x, {m, k}, {tiles.m, tiles.k}))),
               Tile<f32, 2>(load(z, {m, k}, {tiles.m, tiles.k})), Tile<f32, 1>(load(gamma, {k}, {tiles.k})));
      acc = mma(cast<tf32>(left), cast<tf32>(load(w, {k, n}, {tiles.k, tiles.n})), acc);
    }
    store(y, {m, n}, acc);
  });
}
template <class L, class Make>
void check_computed(const MatmulTiles& tiles, const Sizes& of, const Make& make,
                    const std::function<double(float x, float z, float gamma)>& value) {
  INFO(fmt::format("tiles of [{},{}] by {}, {}x{}x{} of {}", tiles.m, tiles.n, tiles.k, of.m, of.n, of.k,
                   name(element_type<L>)));
  const auto k = computed<L>(tiles, make);
  const Problem problem(of);
  CHECK(why_not(k.graph()) == "");
  std::vector<L> x;
  for (const float one : problem.a) x.push_back(L(one));
  std::vector<float> z = whole_numbers(of.m * of.k, 5);
  for (float& one : z) one *= 4;  // no sum with it is so small that tf32 would hold more digits of it
  const std::vector<float> gamma = whole_numbers(of.k, 3);
  const auto y = full_of<f32>(of.m, of.n);
  launch(test_device().stream(), k, tensor<L, 2>({of.m, of.k}, x), problem.w, tensor<f32, 2>({of.m, of.k}, z),
         tensor<f32, 1>({of.k}, gamma), y);
  const std::vector<double> sums = problem.matmul([&](int i, int l) {
    const std::size_t at = static_cast<std::size_t>(i) * of.k + l;
    return value(static_cast<float>(x[at]), z[at], gamma[static_cast<std::size_t>(l)]);
  });
  CHECK(problem.difference(y, [&](int i, int j, double) { return sums[static_cast<std::size_t>(i) * of.n + j]; }) ==
        "");
}
const auto rectified = [](const auto& x, const auto&, const auto&) { return maximum(x, 0.0f); };
const auto combined = [](const auto& x, const auto& z, const auto& gamma) { return x * gamma + z; };

}  // namespace

TEST_CASE("warp-specialized matmul: computed operands of tf32", "[cpu]") {
  const auto of_x = [](float x, float, float) { return double{std::max(x, 0.0f)}; };
  const auto of_all = [](float x, float z, float gamma) { return double{x * gamma + z}; };
  check_computed<f32>({64, 64, 32}, {72, 136, 136}, rectified, of_x);
  check_computed<f32>({64, 128, 64}, {136, 72, 200, true}, combined, of_all);
  check_computed<f32>({128, 128, 32}, {200, 136, 264}, combined, of_all);
  check_computed<f32>({128, 256, 32}, {136, 264, 72, true}, rectified, of_x);
  check_computed<f32>({256, 64, 32}, {264, 72, 72}, rectified, of_x);
  check_computed<f32>({64, 64, 32}, {1, 72, 100}, combined, of_all);
  // For 16-bit types 64 of k are a panel.
  check_computed<bf16>({64, 64, 64}, {72, 136, 136}, combined, of_all);
  check_computed<f16>({128, 128, 64}, {136, 72, 72, true}, rectified, of_x);
}

TEST_CASE("matmuls of tf32 are warp-specialized where one operand is contiguous along k", "[plan]") {
  CHECK(why_not(plain<f32>({128, 256, 32}).graph()) == "");
  CHECK(why_not(plain<f32>({128, 256, 32}).graph(), along(1, 1)) == "");   // the left one of swapped operands
  CHECK(why_not(plain<f32>({128, 256, 32}).graph(), along(1, -1)) == "");  // threads copy it
  CHECK(why_not(plain<f32>({128, 128, 32}).graph(), along(0, 0)) == "");   // threads convert it
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 16}, {64, 64, 48}, {64, 64, 160}, {32, 64, 32}, {64, 80, 32}})
    CHECK(why_not(plain<f32>(tiles).graph()) ==
          fmt::format("no wgmma schedule for tiles of [{0},{2}] x [{2},{1}]", tiles.m, tiles.n, tiles.k));
  const auto right_of = [](const auto& make) {
    return why_not(kernel("right",
                          [=](F x, F w, In<bf16, 2> v, Sums y) {
      auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
      Var acc = zeros<f32>({64, 64});
      for (Index k : range(cdiv(x.extent(1), 64)))
        acc = mma(cast<tf32>(load(x, {m, k}, {64, 64})), make(w, v, k, n), acc);
      store(y, {m, n}, acc);
    }).graph(),
                   along(2, 0));
  };
  using B = Tile<tf32, 2>;
  CHECK(right_of([](const auto& w, const auto&, const Index& k, const Index& n) {
    return B(cast<tf32>(load(w, {k, n}, {64, 64}) * 2.0f));
  }) == "");
  CHECK(right_of([](const auto&, const auto& v, const Index& k, const Index& n) {
    return B(cast<tf32>(cast<f32>(load(v, {k, n}, {64, 64}))));
  }) == "");
  CHECK(right_of([](const auto& w, const auto&, const Index& k, const Index& n) {
    return B(cast<tf32>(load(w, {k, n}, {64, 64}, 1.0f)));
  }) == "the right operand is padded with a value other than 0");
  // The conversion to another type is another value.
  CHECK(right_of([](const auto& w, const auto&, const Index& k, const Index& n) {
    return B(cast<tf32>(cast<f32>(cast<f16>(load(w, {k, n}, {64, 64})))));
  }) == "");
}

TEST_CASE("a k-iteration of tf32 has half the k and as many bytes", "[plan]") {
  struct Share {
    MatmulTiles tiles;
    int groups, consumer_groups, stages;
  };
  for (const Share& share : {Share{{64, 64, 32}, 1, 2, 12},
                             {{128, 128, 32}, 1, 2, 5},
                             {{128, 192, 32}, 1, 2, 4},
                             {{128, 256, 32}, 2, 1, 4},
                             {{256, 128, 32}, 2, 1, 3},
                             {{128, 128, 64}, 1, 2, 2}}) {
    const Plan plan = plan_of(plain<f32>(share.tiles).graph());
    INFO(tree_text(plan));
    REQUIRE(has_roles(plan));
    const Role& consumer = plan.phases[0].roles[1];
    CHECK(consumer.warps == 4 * share.groups);
    CHECK(consumer.consumer_groups == share.consumer_groups);
    CHECK(plan.pipelines[PipelineId{0}].stages == share.stages);
    CHECK(plan.shared_bytes <= plan.target.shared_bytes);
    CHECK(count<TmaLoad>(plan) == 3 * (share.tiles.k / 32));  // the right ones also before the wait
    CHECK(count<TmaStore>(plan) == share.tiles.n / 32);
    CHECK(plan.waits_for_previous());
    for (const TensorMap& map : plan.tensor_maps) CHECK(map.tensor.to_tf32 != map.store);
    CHECK(to_string(plan).find("loaded as tf32") != std::string::npos);
    CHECK(to_string(plan).find("advances 2 per 8 of k") != std::string::npos);
  }
  CHECK(notes(plan_of(plain<f32>({64, 64, 32}).graph(), [](Variant& v) { v.split_k = SplitK::cluster; }))[0].find(
            "64x64x32 tf32 by wgmma, 1 consumer group of 1 warp group") != std::string::npos);
  CHECK(plan_of(plain<f32>({128, 256, 32}).graph(), [](Variant& v) { v.split_k = SplitK::stream_k; }).shared_by_grid());
}

// A value that is only converted shares its register with the loaded element, which must be free before the read
// (C7513).
TEST_CASE("a left operand of tf32 waits for its registers before it is read", "[plan]") {
  for (const Graph& graph :
       {computed<f32>({64, 64, 32}, rectified).graph(), computed<f32>({128, 256, 32}, rectified).graph()}) {
    Plan plan = plan_of(graph);
    const std::vector<StepPlace> reads = places_of<LoadFragment>(plan);
    REQUIRE(!reads.empty());
    for (const StepPlace& place : reads) {
      REQUIRE(place.index > 0);
      CHECK((*place.body)[place.index - 1].action.is<WgmmaWait>());
    }
  }
}

TEST_CASE("wgmma's operands of tf32 are layouts", "[plan]") {
  // PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk8".
  const Layout left = wgmma_operand_layout({64, 8}, 1, ElementType::tf32);
  CHECK(to_string(left) == "warp 4, reg 2, lane 8/4 | reg 2/2, lane 4");
  CHECK(wgmma_operand_layout({128, 32}, 2, ElementType::tf32).registers() == 16);
  const Buffer panels{.label = {}, .type = ElementType::tf32, .rows = 64, .columns = 64, .form = SharedForm::panels};
  CHECK(panels.panel_columns() == 32);
  CHECK(descriptor_of(panels, true).k_step == 2);
}

TEST_CASE("the verifier reports errors of tf32", "[plan]") {
  const PlantedFault faults[] = {
      {"a load that does not convert", [](Plan& p) { p.tensor_maps[TensorMapId{0}].tensor.to_tf32 = false; },
       "holds tf32, but"},
      {"a store that converts", [](Plan& p) { p.tensor_maps[TensorMapId{2}].tensor.to_tf32 = true; },
       "converts f32 to tf32, but only loads"},
      {"a buffer of f32", [](Plan& p) { p.buffers[BufferId{0}].type = ElementType::f32; }, "holds f32, but"},
      {"a left operand along m", [](Plan& p) { the<Wgmma>(p).a_k_major = false; }, "wgmma reads tf32 only k-major"},
      {"a right operand along n", [](Plan& p) { the<Wgmma>(p).b_k_major = false; }, "wgmma reads tf32 only k-major"},
      {"a k that is no multiple of 8", [](Plan& p) { the<Wgmma>(p).k = 12; }, "no wgmma instruction has shape"},
      {"half of k", [](Plan& p) { the<Wgmma>(p).k = 16; }, "along k are multiplied"},
  };
  check_reported(plan_of(plain<f32>({64, 64, 32}).graph()), faults);
  const Plan fragments = plan_of(computed<f32>({64, 64, 32}, rectified).graph());
  REQUIRE(why_not(fragments) == "");
  const auto left_of = [](Plan& p) -> Storage& { return p.storage(the<Wgmma>(p).left); };
  const PlantedFault of_fragments[] = {
      {"a fragment of f32", [&](Plan& p) { left_of(p).type = ElementType::f32; }, "does not hold 1 tf32 in each register"},
      {"a fragment is written while its matmul is open", [](Plan& p) { place_of<WgmmaWait>(p, 1).drop(); },
       "is the left operand of a wgmma in flight"},
      {"no fence before wgmma", [](Plan& p) { place_of<WgmmaFence>(p, 1).drop(); }, "no fence"},
      {"a fence before the fragments", [](Plan& p) { place_of<WgmmaFence>(p, 1).move(-3); }, "no fence"},
  };
  check_reported(fragments, of_fragments);
}

TEST_CASE("warp-specialized matmuls of tf32 compile without spills", "[generate]") {
  std::vector<KernelSource> sources;
  const auto add = [&](const Graph& graph, const Changes& change = {}) {
    sources.push_back(kernel_source(plan_of(graph, change)));
  };
  const auto copied = [](std::size_t tensor) {
    return [=](Variant& variant) {
      variant.tensors[1].contiguous_axis = 0;
      variant.tensors[tensor].alignment = variant.tensors[tensor].row_alignment = 4;
      variant.tensors[tensor].tma_addressable = false;
    };
  };
  for (const MatmulTiles& tiles : wgmma_tiles(ElementType::tf32)) {
    add(plain<f32>(tiles).graph());
    add(plain<bf16>(tiles).graph(), [](Variant& v) { v.split_k = SplitK::stream_k; });
    if (tiles.m * tiles.n <= 128 * 128) add(plain<f32>(tiles).graph(), copied(tiles.m == 128 ? 1 : 0));
    add(computed<f32>(tiles, combined).graph());
    add(computed<f32>(tiles, rectified).graph());
    add(computed<f32>(tiles, rectified).graph(), along(0, 0));
    add(plain<f32>(tiles).graph(), along(0, 0));
  }
  add(plain<f32>({64, 96, 32}).graph());
  check_compiled(sources);
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("a tensor map that does not convert is found by the results", "[emulator]") {
  constexpr int m = 64, n = 64, k = 72;
  const Graph graph = run_passes(plain<f32>({64, 64, 32}).graph());
  std::vector<f32> x(std::size_t{m} * k), w(std::size_t{k} * n), y(std::size_t{m} * n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = uneven[i % std::size(uneven)];
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = whole[i % std::size(whole)];
  std::vector<double> expected(y.size());
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int l = 0; l < k; ++l)
        expected[static_cast<std::size_t>(i * n + j)] +=
            double{math::round_to_tf32(x[static_cast<std::size_t>(i * k + l)])} *
            w[static_cast<std::size_t>(j * k + l)];
  std::vector<Argument> arguments = {dense_argument(x, {m, k}), dense_argument(w, {n, k}), dense_argument(y, {m, n})};
  std::swap(arguments[1].extent[0], arguments[1].extent[1]);
  std::swap(arguments[1].stride[0], arguments[1].stride[1]);
  Variant variant = classify(graph, arguments);
  std::vector<KernelSource> sources{generate(graph, variant, Arch::sm_90a)};
  sources.push_back(sources[0]);
  for (TmaTensor& tma_tensors : sources[1].tma_tensors) tma_tensors.to_tf32 = false;
  const Emulator emulator = Emulator::compile(sources);
  for (const std::size_t i : {0, 1}) {
    CHECK(emulator.run(i, graph, arguments, std::vector<std::int64_t>{1, 1}, {.persistent_blocks = 1}).text() == "");
    CHECK(std::ranges::equal(y, expected) == (i == 0));
  }
}
#endif

}  // namespace test_warp_specialized_tf32
