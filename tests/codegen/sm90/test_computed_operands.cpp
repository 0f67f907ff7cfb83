// Computed left operands of warp-specialized matmuls, multiplied from registers: compared on any device with sums of
// small numbers, which are exact in any order; which kernels have them; and how planted faults are reported.
#include <fmt/format.h>

#include <functional>
#include <random>
#include <set>

#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/remarks.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/devices.hpp"
#include "support/emulating.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"
#include "support/tensors.hpp"

namespace test_computed_operands {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

using Row = In<f32, 1>;
using Column = In<f32, 2>;

/// How a left operand is computed in a k-iteration.
template <class L>
struct Parts {
  const In<L, 2>&x, &z;
  const Row &gamma, &beta;
  Tile<f32, 2> mean, scale;  ///< [m,1], computed before the loop
  Index m, k;
  MatmulTiles tiles;

  auto tile(const In<L, 2>& of) const { return load(of, {m, k}, {tiles.m, tiles.k}); }
  Tile<f32, 2> real(const In<L, 2>& of) const { return cast<f32>(tile(of)); }
  auto row(const Row& of) const { return load(of, {k}, {tiles.k}); }
};

/// y = make(...) w, summed up in f32.
template <class L, class T, class Y = f32, class Make>
auto matmul_of(const MatmulTiles& tiles, const Make& make) {
  return kernel("computed",
                [=](In<L, 2> x, In<L, 2> z, Column mean, Column scale, Row gamma, Row beta, In<T, 2> w, Out<Y, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const Tile<f32, 2> means = load(mean, {m, 0}, {tiles.m, 1}), scales = load(scale, {m, 0}, {tiles.m, 1});
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index k : range(cdiv(w.extent(0), tiles.k))) {
      const Tile<T, 2> left = make(Parts<L>{x, z, gamma, beta, means, scales, m, k, tiles});
      acc = mma(left, load(w, {k, n}, {tiles.k, tiles.n}), acc);
    }
    store(y, {m, n}, cast<Y>(acc));
  });
}

/// `apart`: row strides of left operands are a multiple of this number of bytes; 16 makes them TMA-addressable.
Plan plan_of(const Graph& traced, const std::vector<int>& unit_axes = {}, bool clusters = false, int apart = 16) {
  return plan_with(traced, [&](Variant& variant) {
    variant.split_k = clusters ? SplitK::cluster : SplitK::none;
    for (std::size_t i = 0; i < unit_axes.size(); ++i)
      variant.tensors[i].contiguous_axis = static_cast<std::int8_t>(unit_axes[i]);
    for (const std::size_t left : {0, 1}) {
      if (apart == 16) continue;
      variant.tensors[left].alignment = variant.tensors[left].row_alignment = static_cast<std::int8_t>(apart);
      variant.tensors[left].tma_addressable = false;
    }
  });
}

struct Sizes {
  int m, n, k;
  bool transposed = false, w_transposed = false;  ///< in memory: the left operand's tiles, the right operand
  int gap = 0;                            ///< after each row of those tiles
};

/// Small numbers: f32 holds their accumulators, and 16 bits each element of a left operand.
struct Numbers {
  explicit Numbers(const Sizes& of) : of(of) {
    std::mt19937 rng(static_cast<unsigned>(of.m * 31 + of.n * 7 + of.k));
    const auto fill = [&](std::vector<float>& values, int count, std::vector<float> among) {
      for (int i = 0; i < count; ++i) values.push_back(among[rng() % among.size()]);
    };
    fill(x, of.m * of.k, {-3, -2, -1, 0, 1, 2, 3});
    fill(z, of.m * of.k, {-2, -1, 1, 2});
    fill(w, of.k * of.n, {-1, 0, 1});
    fill(mean, of.m, {-1, 0, 1});
    fill(scale, of.m, {0.5f, 1, 2});
    fill(gamma, of.k, {-2, -1, 1, 2});
    fill(beta, of.k, {-3, -1, 0, 1, 2});
  }
  float at(const std::vector<float>& values, int i, int l) const {
    return values[static_cast<std::size_t>(i) * of.k + l];
  }

  Sizes of;
  std::vector<float> x, z, w, mean, scale, gamma, beta;
};

template <class T>
Tensor<T, 2> matrix(const std::vector<float>& values, int rows, int columns, bool transposed, int gap,
                    std::vector<Tensor<T, 1>>& memory) {
  const int stride = (transposed ? rows : columns) + gap;
  std::vector<T> elements(static_cast<std::size_t>(transposed ? columns : rows) * stride, stored<T>(100));
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      elements[static_cast<std::size_t>(transposed ? j * stride + i : i * stride + j)] =
          T(values[static_cast<std::size_t>(i) * columns + j]);
  memory.push_back(tensor<T, 1>({static_cast<std::int64_t>(elements.size())}, elements));
  return Tensor<T, 2>(test_device(), memory.back().data(), {rows, columns}, {transposed ? 1 : stride, transposed ? stride : 1});
}

/// Empty, or the first result that is not the sum of value(numbers, i, l), as a T, times w.
template <class T, class Y>
std::string difference(const Tensor<Y, 2>& y, const Numbers& numbers,
                       const std::function<double(const Numbers&, int, int)>& value) {
  const Sizes& of = numbers.of;
  const std::vector<Y> got = y.to_vector();
  for (int i = 0; i < of.m; ++i) {
    std::vector<float> row;
    for (int l = 0; l < of.k; ++l) row.push_back(float(T(static_cast<float>(value(numbers, i, l)))));
    for (int j = 0; j < of.n; ++j) {
      double sum = 0;
      for (int l = 0; l < of.k; ++l)
        sum += row[static_cast<std::size_t>(l)] * numbers.w[static_cast<std::size_t>(l) * of.n + j];
      const auto found = float(got[static_cast<std::size_t>(i) * of.n + j]),
                 rounded = float(Y(static_cast<float>(sum)));
      if (found != rounded) return fmt::format("[{},{}] is {}, not {}", i, j, found, rounded);
    }
  }
  return {};
}

template <class L, class T, class Y = f32, class Make>
void check(const MatmulTiles& tiles, const Sizes& of, const Make& make,
           const std::function<double(const Numbers&, int, int)>& value) {
  INFO(fmt::format("tiles of [{},{}] by {}, {}x{}x{}{}{}, {} as {}", tiles.m, tiles.n, tiles.k, of.m, of.n, of.k,
                   of.transposed ? ", left transposed" : "", of.w_transposed ? ", right transposed" : "", name(element_type<L>),
                   name(element_type<T>)));
  const auto k = matmul_of<L, T, Y>(tiles, make);
  const int left = of.transposed ? 0 : 1;
  const int row = ((of.transposed ? of.m : of.k) + of.gap) * static_cast<int>(sizeof(L));
  const bool addressed = row % 16 == 0;
  Plan plan = plan_of(k.graph(), {left, left, 1, 1, 0, 0, of.w_transposed ? 0 : 1}, false, addressed ? 16 : sizeof(L));
  INFO(why_not(plan));
  CHECK(has_roles(plan));
  const auto stages = places_of<StoreShared>(plan);
  const auto fills = [](const StepPlace& place) { return bool(place.step().action.get<StoreShared>().state); };
  CHECK(std::ranges::any_of(stages, fills) == !addressed);  // threads copy operands that are not TMA-addressable
  const Numbers numbers(of);
  std::vector<Tensor<L, 1>> memory;
  std::vector<Tensor<T, 1>> w_memory;
  const auto y = tensor<Y, 2>({of.m, of.n}, std::vector<Y>(static_cast<std::size_t>(of.m) * of.n, Y(99.0f)));
  launch(test_device().stream(), k, matrix<L>(numbers.x, of.m, of.k, of.transposed, of.gap, memory),
         matrix<L>(numbers.z, of.m, of.k, of.transposed, of.gap, memory), tensor<f32, 2>({of.m, 1}, numbers.mean),
         tensor<f32, 2>({of.m, 1}, numbers.scale), tensor<f32, 1>({of.k}, numbers.gamma),
         tensor<f32, 1>({of.k}, numbers.beta), matrix<T>(numbers.w, of.k, of.n, of.w_transposed, 0, w_memory), y);
  CHECK(difference<T>(y, numbers, value) == "");
}

// --- operands, as tiles and as numbers

template <class T>
constexpr auto casted = [](const auto& p) { return Tile<T, 2>(cast<T>(p.tile(p.x))); };
const auto x_itself = [](const Numbers& n, int i, int l) { return double{n.at(n.x, i, l)}; };

template <class T>
constexpr auto normalized = [](const auto& p) {
  return Tile<T, 2>(cast<T>((p.real(p.x) - p.mean) * p.scale * p.row(p.gamma) + p.row(p.beta)));
};
const auto x_normalized = [](const Numbers& n, int i, int l) {
  const auto r = static_cast<std::size_t>(i), c = static_cast<std::size_t>(l);
  return double{(n.at(n.x, i, l) - n.mean[r]) * n.scale[r] * n.gamma[c] + n.beta[c]};
};

template <class T>
constexpr auto rectified = [](const auto& p) { return Tile<T, 2>(cast<T>(maximum(p.real(p.x), 0.0f))); };
const auto x_rectified = [](const Numbers& n, int i, int l) { return double{std::max(n.at(n.x, i, l), 0.0f)}; };

template <class T>
constexpr auto multiplied = [](const auto& p) { return Tile<T, 2>(cast<T>(p.real(p.x) * p.real(p.z))); };
const auto x_by_z = [](const Numbers& n, int i, int l) { return double{n.at(n.x, i, l) * n.at(n.z, i, l)}; };

constexpr MatmulTiles all_tiles[] = {{64, 64, 64},   {64, 192, 64}, {64, 256, 64},  {64, 128, 128},
                                      {64, 64, 256},  {128, 64, 64}, {128, 128, 64}, {128, 192, 64},
                                      {128, 256, 64}, {256, 64, 64}, {256, 128, 64}};

}  // namespace

TEST_CASE("warp-specialized matmul: computed operands that are cast", "[cpu]") {
  Cases cases(24);
  for (const MatmulTiles& tiles : all_tiles) {
    const Sizes of{tiles.m + 40, tiles.n + 24, 2 * tiles.k + 8};
    // Two stages of f32 do not fit beside the staged output.
    const bool fits = tiles.m < 256 && tiles.k < 256;
    if (fits && !cases.skip()) check<f32, bf16>(tiles, of, casted<bf16>, x_itself);
    if (!cases.skip()) check<f16, bf16>(tiles, {of.m, of.n, of.k, false, true}, casted<bf16>, x_itself);
    if (!cases.skip()) check<bf16, f16>(tiles, {of.m, of.n, of.k, true, false}, casted<f16>, x_itself);
  }
  for (const bool transposed : {true, false})
    for (const bool w_transposed : {true, false}) {
      if (!cases.skip()) check<f32, f16>({64, 64, 64}, {72, 136, 200, transposed, w_transposed}, casted<f16>, x_itself);
      if (!cases.skip()) check<f32, bf16>({128, 128, 64}, {136, 80, 136, transposed, w_transposed}, casted<bf16>, x_itself);
    }
  check<i32, bf16>({64, 64, 64}, {72, 72, 136}, casted<bf16>, x_itself);
  // 96 16-bit columns are no multiple of a panel: their right operand is stored transposed.
  check<f32, bf16>({64, 96, 64}, {72, 120, 136, false, true}, casted<bf16>, x_itself);
  check<bf16, f16>({128, 96, 64}, {136, 120, 200, true, true}, casted<f16>, x_itself);
}

TEST_CASE("warp-specialized matmul: computed operands of an expression", "[cpu]") {
  check<f32, bf16>({64, 128, 64}, {136, 72, 200}, normalized<bf16>, x_normalized);
  check<f32, bf16>({128, 128, 64}, {200, 136, 264}, normalized<bf16>, x_normalized);
  check<bf16, f16>({128, 256, 64}, {136, 264, 200, true, true}, normalized<f16>, x_normalized);
  check<f16, f16>({64, 128, 128}, {72, 136, 264}, normalized<f16>, x_normalized);
  check<bf16, bf16>({64, 64, 64}, {72, 136, 136}, rectified<bf16>, x_rectified);
  check<f32, f16>({128, 192, 64}, {136, 200, 72, true}, rectified<f16>, x_rectified);
  check<bf16, bf16>({64, 64, 64}, {72, 136, 136}, multiplied<bf16>, x_by_z);
  check<f32, bf16>({64, 64, 128}, {72, 72, 264, false, true}, multiplied<bf16>, x_by_z);
}

// The order of rows that suits reads of f32, and others.
TEST_CASE("warp-specialized matmul: computed operands, of which 16-bit results are stored", "[cpu]") {
  check<f32, bf16, bf16>({64, 128, 64}, {136, 136, 200}, normalized<bf16>, x_normalized);
  check<f32, f16, bf16>({128, 256, 64}, {136, 264, 72, false, true}, casted<f16>, x_itself);
  check<f32, bf16, f16>({128, 64, 64}, {200, 72, 136, true}, casted<bf16>, x_itself);
  check<bf16, f16, bf16>({128, 128, 64}, {136, 72, 136}, rectified<f16>, x_rectified);
  check<f32, bf16, bf16>({64, 64, 64}, {72, 71, 136}, multiplied<bf16>, x_by_z);  // TMA stores no rows of 71
}

TEST_CASE("warp-specialized matmul: computed operands of fewer rows than tiles, of one tile or many k-iterations",
          "[cpu]") {
  check<f32, bf16>({64, 64, 64}, {1, 72, 200}, normalized<bf16>, x_normalized);
  check<f32, bf16>({128, 128, 64}, {16, 8, 40}, normalized<bf16>, x_normalized);
  check<bf16, bf16>({64, 64, 64}, {8, 16, 24, true, true}, rectified<bf16>, x_rectified);
  check<f32, bf16>({64, 64, 64}, {72, 40, 64 * 19 + 24}, normalized<bf16>, x_normalized);
  check<f32, bf16>({64, 64, 64}, {64 * 7, 64 * 3, 64}, multiplied<bf16>, x_by_z);
  check<f16, bf16>({128, 192, 64}, {128, 192, 64}, casted<bf16>, x_itself);
}

TEST_CASE("warp-specialized matmul: computed operands of tiles that are not TMA-addressable", "[cpu]") {
  check<f32, bf16>({64, 64, 64}, {.m = 72, .n = 136, .k = 144, .gap = 1}, normalized<bf16>, x_normalized);
  check<bf16, bf16>({64, 128, 64}, {.m = 67, .n = 136, .k = 133, .transposed = true, .gap = 0}, multiplied<bf16>, x_by_z);
  check<f32, f16>({128, 128, 64}, {.m = 136, .n = 72, .k = 71}, casted<f16>, x_itself);
}

// The index of an element in the matrix, the k-iteration's index, and a transposed tile beside one that is not.
TEST_CASE("warp-specialized matmul: computed operands of indices, k-iterations and transposed tiles", "[cpu]") {
  const auto masked = [](const auto& p) {
    const Tile rows = p.m * p.tiles.m + iota({p.tiles.m, 1}, 0), columns = p.k * p.tiles.k + iota({1, p.tiles.k}, 1);
    return Tile<bf16, 2>(cast<bf16>(where(columns <= rows, p.real(p.x), cast<f32>(p.k % 3))));
  };
  check<bf16, bf16>({64, 64, 64}, {136, 72, 200}, masked, [](const Numbers& n, int i, int l) {
    return double{l <= i ? n.at(n.x, i, l) : static_cast<float>(l / 64 % 3)};
  });
  const auto transposed =
      kernel("transposed", [](In<f32, 2> x, In<bf16, 2> z, In<f32, 2> factors, In<bf16, 2> w, Out<f32, 2> y) {
        auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
        Var acc = zeros<f32>({64, 64});
        for (Index k : range(cdiv(w.extent(0), 64))) {
          const Tile factor = load(factors, {m, k}, {64, 1});
          const Tile left = transpose(load(x, {k, m}, {64, 64})) * factor + cast<f32>(load(z, {m, k}, {64, 64}));
          acc = mma(cast<bf16>(left), load(w, {k, n}, {64, 64}), acc);
        }
        store(y, {m, n}, acc);
      });
  CHECK(why_not(plan_of(transposed.graph())) == "");
  const Sizes of{72, 136, 200};
  const Numbers numbers(of);
  std::vector<float> factors;
  for (int i = 0; i < of.m * 4; ++i) factors.push_back(static_cast<float>(i % 5 - 2));
  std::vector<Tensor<f32, 1>> x_memory;
  std::vector<Tensor<bf16, 1>> memory;
  std::vector<float> x(numbers.x.size());  // k rows
  for (int i = 0; i < of.m; ++i)
    for (int l = 0; l < of.k; ++l) x[static_cast<std::size_t>(l) * of.m + i] = numbers.at(numbers.x, i, l);
  const auto y = tensor<f32, 2>({of.m, of.n}, std::vector<f32>(static_cast<std::size_t>(of.m) * of.n, 99));
  launch(test_device().stream(), transposed, matrix<f32>(x, of.k, of.m, false, 0, x_memory),
         matrix<bf16>(numbers.z, of.m, of.k, false, 0, memory), tensor<f32, 2>({of.m, 4}, factors),
         matrix<bf16>(numbers.w, of.k, of.n, false, 0, memory), y);
  CHECK(difference<bf16>(y, numbers, [&](const Numbers& n, int i, int l) {
          return double{n.at(n.x, i, l) * factors[static_cast<std::size_t>(i * 4 + l / 64)] + n.at(n.z, i, l)};
        }) == "");
}

TEST_CASE("warp-specialized matmul: computed operands of several matmuls, and of batches", "[cpu]") {
  const Sizes of{136, 72, 200};
  const Numbers numbers(of);
  std::vector<Tensor<bf16, 1>> memory;
  std::vector<Tensor<f32, 1>> x_memory;
  const auto x = matrix<f32>(numbers.x, of.m, of.k, false, 0, x_memory);
  const auto z = matrix<bf16>(numbers.z, of.m, of.k, false, 0, memory),
             w = matrix<bf16>(numbers.w, of.k, of.n, false, 0, memory);
  const auto empty = [&] {
    return tensor<f32, 2>({of.m, of.n}, std::vector<f32>(static_cast<std::size_t>(of.m) * of.n, 99));
  };
  const auto a = empty(), b = empty(), c = empty(), d = empty();
  // One operand of two matmuls, another one, and one that is loaded from memory.
  const auto several = kernel("several", [](In<f32, 2> x, In<bf16, 2> z, In<bf16, 2> w, Out<f32, 2> a, Out<f32, 2> b,
                                            Out<f32, 2> c, Out<f32, 2> d) {
    auto [m, n] = blocks(cdiv(a.extent(0), 64), cdiv(a.extent(1), 64));
    Var of_x = zeros<f32>({64, 64}), again = full<f32>({64, 64}, 1), of_both = zeros<f32>({64, 64}),
        of_z = zeros<f32>({64, 64});
    for (Index k : range(cdiv(w.extent(0), 64))) {
      const Tile left = load(x, {m, k}, {64, 64});
      const Tile other = load(z, {m, k}, {64, 64}), right = load(w, {k, n}, {64, 64});
      const Tile doubled = left * 2.0f;
      of_x = mma(cast<bf16>(doubled), right, of_x);
      again = mma(cast<bf16>(doubled), right, again);
      of_both = mma(cast<bf16>(doubled + cast<f32>(other)), right, of_both);
      of_z = mma(other, right, of_z);
    }
    store(a, {m, n}, of_x);
    store(b, {m, n}, again);
    store(c, {m, n}, of_both);
    store(d, {m, n}, of_z);
  });
  CHECK(why_not(plan_of(several.graph())) == "");
  launch(test_device().stream(), several, x, z, w, a, b, c, d);
  const auto twice = [](const Numbers& n, int i, int l) { return 2.0 * n.at(n.x, i, l); };
  const auto z_itself = [](const Numbers& n, int i, int l) { return double{n.at(n.z, i, l)}; };
  CHECK(difference<bf16>(a, numbers, twice) == "");
  std::vector<f32> less = b.to_vector();
  for (f32& sum : less) sum -= 1;
  CHECK(difference<bf16>(tensor<f32, 2>({of.m, of.n}, less), numbers, twice) == "");
  CHECK(difference<bf16>(c, numbers,
                         [&](const Numbers& n, int i, int l) { return twice(n, i, l) + n.at(n.z, i, l); }) == "");
  CHECK(difference<bf16>(d, numbers, z_itself) == "");
  // A tile of each batch, and one that is the same in all k-iterations.
  const auto batches = kernel("batches", [](In<f32, 3> x, In<bf16, 2> w, In<f32, 2> bias, Out<f32, 3> y) {
    auto [i, m, n] = blocks(y.extent(0), cdiv(y.extent(1), 64), cdiv(y.extent(2), 64));
    const Tile added = load(bias, {0, 0}, {64, 64});
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(w.extent(0), 64)))
      acc = mma(cast<bf16>(reshape(load(x, {i, m, k}, {1, 64, 64}), {64, 64}) + added), load(w, {k, n}, {64, 64}), acc);
    store(y, {i, m, n}, reshape(acc, {1, 64, 64}));
  });
  CHECK(why_not(plan_of(batches.graph())) == "");
  std::vector<float> both(numbers.x), bias(64 * 64);
  both.insert(both.end(), numbers.z.begin(), numbers.z.end());
  for (std::size_t e = 0; e < bias.size(); ++e) bias[e] = static_cast<float>(e % 7) - 3;
  const auto y = tensor<f32, 3>({2, of.m, of.n}, std::vector<f32>(std::size_t{2} * of.m * of.n, 99));
  launch(test_device().stream(), batches, tensor<f32, 3>({2, of.m, of.k}, both), w, tensor<f32, 2>({64, 64}, bias), y);
  const std::vector<f32> got = y.to_vector();
  const auto half = static_cast<std::ptrdiff_t>(got.size() / 2);
  const auto biased = [&](double at, int i, int l) {
    return at + bias[static_cast<std::size_t>(i % 64 * 64 + l % 64)];
  };
  CHECK(difference<bf16>(tensor<f32, 2>({of.m, of.n}, {got.begin(), got.begin() + half}), numbers,
                         [&](const Numbers& n, int i, int l) { return biased(n.at(n.x, i, l), i, l); }) == "");
  CHECK(difference<bf16>(tensor<f32, 2>({of.m, of.n}, {got.begin() + half, got.end()}), numbers,
                         [&](const Numbers& n, int i, int l) { return biased(n.at(n.z, i, l), i, l); }) == "");
}

TEST_CASE("a left operand is computed in pieces that alternate between two sets of registers", "[plan]") {
  bool some_ahead = false;
  for (const MatmulTiles& tiles : all_tiles)
    for (const bool clusters : {false, true}) {
      Plan plan = plan_of(matmul_of<bf16, bf16>(tiles, normalized<bf16>).graph(), {}, clusters);
      INFO(fmt::format("[{},{}] by {}\n", tiles.m, tiles.n, tiles.k) << tree_text(plan));
      REQUIRE(why_not(plan) == "");
      const int groups = plan.phases[0].roles[1].warps / 4, pieces = tiles.k * tiles.m / (64 * groups * 32);
      CHECK(count<LoadFragment>(plan) == pieces);
      CHECK(count<Wgmma>(plan) == pieces);
      CHECK(count<WgmmaCommit>(plan) == pieces);
      CHECK(count<WgmmaFence>(plan) == pieces);
      CHECK(count<WgmmaWait>(plan) == pieces + 1);
      CHECK(plan.pipelines[PipelineId{0}].empty_arrivals == 4 * groups);
      int sets = 0;
      for (const Storage& storage : plan.storages) {
        if (storage.packed == 1) continue;
        ++sets;
        CHECK(storage.registers == 16);
      }
      CHECK(sets == 2);
      CHECK(plan.shared_bytes <= plan.target.shared_bytes);
      // Columns are read once. Rows are read in each k-iteration, or for the first and in each for the next.
      const bool ahead = notes(plan)[0].find("rows of operands loaded a k-iteration ahead") != std::string::npos;
      some_ahead |= ahead;
      int loads = 0;
      for (const StepPlace& place : places_of<Load>(plan))
        loads += !place.step().action.get<Load>().access.from_here;
      CHECK(loads == (ahead ? 6 : 4));
    }
  CHECK(some_ahead);
}

namespace {

// The coordinate along an axis of a lane's first register.
int coordinate(const Layout& layout, int axis, int lane) {
  int sum = 0;
  for (const auto& [factor, scale] : layout.thread_digits(axis))
    if (factor.place == Place::lane) sum += lane / factor.unit % factor.size * scale;
  return sum;
}

}  // namespace

TEST_CASE("half a warp reads a tile of f32 without a bank conflict, and eight lanes store a matrix so", "[plan]") {
  for (const MatmulTiles& tiles : all_tiles) {
    if (tiles.m == 256 || tiles.k == 256) continue;
    Plan plan = plan_of(matmul_of<f32, bf16, bf16>(tiles, normalized<bf16>).graph());
    INFO(fmt::format("[{},{}] by {}: ", tiles.m, tiles.n, tiles.k) << why_not(plan));
    REQUIRE(has_roles(plan));
    const LoadFragment& read = the<LoadFragment>(plan);
    CHECK(read.sweep.layout.run(1) == 2);
    for (const int half : {0, 16}) {
      std::set<std::int64_t> pairs;
      for (int lane = half; lane < half + 16; ++lane)
        pairs.insert(plan.buffers[read.buffer].offset_of(coordinate(read.sweep.layout, 0, lane),
                                                         coordinate(read.sweep.layout, 1, lane)) /
                     8 % 16);
      CHECK(pairs.size() == 16);
    }
    const StoreShared& store = the<StoreShared>(plan);
    CHECK(store.by == StoreShared::By::matrix);
    std::set<std::int64_t> chunks;
    for (int lane = 0; lane < 32; lane += 4)
      chunks.insert(plan.buffers[store.buffer].offset_of(coordinate(store.sweep.layout, 0, lane), 0) / 16 % 8);
    CHECK(chunks.size() == 8);
  }
}

TEST_CASE("reasons why a left operand is not computed in registers", "[plan]") {
  const MatmulTiles tiles{64, 64, 64};
  const auto of = [&](const auto& make) { return why_not(plan_of(matmul_of<f32, bf16>(tiles, make).graph())); };
  CHECK(of(normalized<bf16>) == "");
  CHECK(of([](const auto& p) { return Tile<bf16, 2>(cast<bf16>(p.real(p.x) - max(p.real(p.x), Axis(1)))); }) ==
        "the left operand comes from 'max'");
  CHECK(of([](const auto& p) { return Tile<bf16, 2>(cast<bf16>(transpose(p.real(p.x) * 2.0f))); }) ==
        "the left operand comes from 'mul'");
  CHECK(of([](const auto& p) {
          const Tile<i32, 1> rows = p.m * 64 + iota({64}, 0);
          return Tile<bf16, 2>(cast<bf16>(gather(p.x, rows, {p.k}, {64}) * 2.0f));
        }) == "the left operand comes from 'gather'");
  CHECK(of([](const auto& p) {
          return Tile<bf16, 2>(cast<bf16>(load(p.x, {p.m, p.k}, {64, 64}, 1.0f)));
        }) == "the left operand is padded with a value other than 0");
  CHECK(why_not(plan_of(matmul_of<i64, bf16>(tiles, casted<bf16>).graph())) == "the left operand is computed from i64");
  CHECK(why_not(plan_of(matmul_of<u8, bf16>(tiles, casted<bf16>).graph())) ==
        "[64,64] u8 cannot be divided into panels of 8 rows of 128 bytes");
  const auto written = kernel("written", [](InOut<f32, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(w.extent(0), 64))) {
      const Tile a = load(x, {m, k}, {64, 64});
      acc = mma(cast<bf16>(a), load(w, {k, n}, {64, 64}), acc);
    }
    store(y, {m, n}, acc);
  });
  CHECK(why_not(plan_of(written.graph())) == "the left operand is loaded from a tensor that is written");
}

TEST_CASE("kernels that compute a left operand compile without spills", "[generate]") {
  std::vector<KernelSource> sources;
  const auto add = [&](const auto& kernel, bool clusters = false) {
    sources.push_back(kernel_source(plan_of(kernel.graph(), {}, clusters)));
  };
  for (const MatmulTiles& tiles : all_tiles) {
    if (tiles.m < 256 && tiles.k < 256) add(matmul_of<f32, bf16>(tiles, normalized<bf16>));
    add(matmul_of<bf16, f16>(tiles, normalized<f16>), tiles.n == 64);
    add(matmul_of<f16, bf16>(tiles, casted<bf16>));
    add(matmul_of<bf16, bf16>(tiles, multiplied<bf16>), tiles.n == 128);
  }
  sources.push_back(
      kernel_source(plan_of(matmul_of<f32, bf16>({64, 96, 64}, casted<bf16>).graph(), {1, 1, 1, 1, 0, 0, 0})));
  check_compiled(sources);
}

namespace {

struct Planted {
  const char* name;
  Plant plant;
  const char* verifier;  ///< its message
  const char* emulator;  ///< the same; "": no error, but wrong results; null: no effect there
};
/// The steps between matmuls: reads, waits and fences of a piece.
const Planted faults[] =
    {
        {"a fragment is written while its matmul is open",
         [](Plan& p) {
  for (std::size_t i = 0; i < 2; ++i) the<WgmmaWait>(p, i).pending = 2;
         },
         "is the left operand of a wgmma in flight", "registers"},
        {"nobody waits for the matmul of the previous piece", [](Plan& p) { place_of<WgmmaWait>(p, 1).drop(); },
         "is the left operand of a wgmma in flight", "registers"},
        {"one set of fragments",
         [](Plan& p) {
  std::vector<StorageId> sets;
  for (int i = 0; i < p.storages.size(); ++i)
    if (p.storages[StorageId{i}].packed > 1) sets.push_back(StorageId{i});
  for (Value& value : p.values)
    if (value.storage == sets.at(1)) value.storage = sets[0];
         },
         "is the left operand of a wgmma in flight", "registers"},
              {"no fence before wgmma", [](Plan& p) { place_of<WgmmaFence>(p, 1).drop(); }, "no fence",
               "no wgmma_fence"},
              {"a fence before the fragments", [](Plan& p) { place_of<WgmmaFence>(p, 1).move(-3); },
               "no fence", nullptr},
              {"a piece is omitted",
               [](Plan& p) {
  place_of<Wgmma>(p, 1).drop();
  place_of<WgmmaCommit>(p, 1).drop();
               },
               "along k are multiplied", "registers"},
    {"a piece is multiplied by another's rows", [](Plan& p) { the<Wgmma>(p, 1).first_k = 0; },
     "k is multiplied from 0 on", ""},
    {"a piece at another index", [](Plan& p) { the<LoadFragment>(p, 1).sweep.origin[1] = 0; },
     "is another part of the tile", ""},
    {"a stage is read before it is full", [](Plan& p) { place_of<WaitFull>(p).move(1); }, "not known to be full",
     "TMA for"},
    {"a transposed tile", [](Plan& p) { the<LoadFragment>(p, 0).transposed = true; }, nullptr, ""},
    {"one thread releases for its warp group",
     [](Plan& p) {
  for (const StepPlace& place : places_of<ElectOne>(p)) {
    ElectOne& one = place.step().action.get<ElectOne>();
    if (one.threads == 32) one.threads = 128;
  }
  p.pipelines[PipelineId{0}].empty_arrivals /= 4;
     },
     "release a stage that each has read", "with no barrier between"},
    {"no warp barrier before a release",
     [](Plan& p) {
  while (count<WarpBarrier>(p) > 0) place_of<WarpBarrier>(p).drop();
     },
     "a warp barrier must precede", "with no barrier between"},
    {"a stage is released while it is multiplied",
     [](Plan& p) {
  the<ArriveEmpty>(p) = {.state = the<ArriveEmpty>(p).state, .behind = 0, .not_first = {}};
  place_of<ArriveEmpty>(p, 1).drop();
     },
     "wgmma that read the stage are in flight", "with no barrier between"},
    {"a matmul of another operand", [](Plan& p) { the<Wgmma>(p, 1).left = the<Wgmma>(p, 0).left; }, "is multiplied",
     "registers"},
    {"pairs are treated as elements",
     [](Plan& p) {
  Value& value = p.values[the<LoadFragment>(p, 0).out];
  p.storages[value.storage].type = ElementType::bf16;
  p.storages[value.storage].packed = 2;
     },
     "has several elements in a register, which only wgmma may read", nullptr},
    };

}  // namespace

TEST_CASE("the verifier reports errors of a left operand in registers", "[plan]") {
  std::vector<PlantedFault> reported;
  for (const Planted& fault : faults)
    if (fault.verifier) reported.push_back({fault.name, fault.plant, fault.verifier});
  check_reported(plan_of(matmul_of<f32, bf16>({64, 64, 64}, casted<bf16>).graph()), reported);
}

#ifdef TESSERA_HAS_EMULATOR
TEST_CASE("faults in a left operand in registers are found without the verifier", "[emulator]") {
  constexpr int m = 72, n = 72, k = 64 * 13 + 8;  // more k-iterations than stages
  const Graph graph = run_passes(matmul_of<f32, bf16>({64, 64, 64}, casted<bf16>).graph());
  const Numbers numbers({m, n, k});
  std::vector<f32> x(numbers.x), mean(m), row(k), y(std::size_t{m} * n), expected(y.size());
  std::vector<bf16> w;
  for (const float value : numbers.w) w.push_back(bf16(value));
  for (int i = 0; i < m; ++i)
    for (int l = 0; l < k; ++l)
      for (int j = 0; j < n; ++j)
        expected[static_cast<std::size_t>(i * n + j)] +=
            numbers.at(numbers.x, i, l) * numbers.w[static_cast<std::size_t>(l * n + j)];
  const Argument left = dense_argument(x, {m, k}), column = dense_argument(mean, {m, 1}),
                 line = dense_argument(row, {k});
  const std::vector<Argument> arguments = {
      left, left, column, column, line, line, dense_argument(w, {k, n}), dense_argument(y, {m, n})};
  const Plan right = make_plan(graph, dense_variant(graph), Arch::sm_90a, {});
  std::vector<KernelSource> sources{kernel_source(right)};
  std::vector<const Planted*> planted;
  for (const Planted& fault : faults) {
    if (!fault.emulator) continue;
    Plan plan = right;
    fault.plant(plan);
    sources.push_back(kernel_source(plan));
    planted.push_back(&fault);
  }
  // Swapped halves of a fragment.
  static const Planted swapped{"halves of a fragment", [](Plan&) {}, nullptr, ""};
  KernelSource& halves = sources.emplace_back(kernel_source(right));
  constexpr std::string_view pack = "[g / 2] = pack_bf16(";
  const std::size_t at = halves.text.find(pack, halves.text.find("// ---- kernel"));
  REQUIRE(at != std::string::npos);
  std::size_t comma = 0, end = at + pack.size();
  for (int depth = 0; depth >= 0; ++end) {
    const char c = halves.text[end];
    depth += (c == '(') - (c == ')');
    if (c == ',' && depth == 0) comma = end;
  }
  const std::size_t first = at + pack.size();
  const std::string low = halves.text.substr(first, comma - first),
                    high = halves.text.substr(comma + 2, end - comma - 3);
  halves.text.replace(first, end - first, fmt::format("{}, {})", high, low));
  planted.push_back(&swapped);
  const Emulator emulator = Emulator::compile(sources);
  const auto run = [&](std::size_t i, std::uint64_t seed) {
    std::ranges::fill(y, 0.0f);
    return emulator.run(i, graph, arguments, std::vector<std::int64_t>{2, 2}, {.seed = seed, .persistent_blocks = 1});
  };
  for (const std::uint64_t seed : {1, 2, 3}) {
    CHECK(run(0, seed).text() == "");
    CHECK(y == expected);
  }
  for (std::size_t i = 0; i < planted.size(); ++i) {
    const Report report = run(i + 1, 1);
    INFO(planted[i]->name);
    check_found(report, planted[i]->emulator, y != expected);
  }
}
#endif

}  // namespace test_computed_operands
