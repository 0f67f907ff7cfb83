// Warp-specialized matmuls that wgmma does with swapped operands, since only its left operand may come from registers:
// compared on any device with exact sums of small numbers; which kernels have them; and how planted faults are
// reported.
#include <fmt/format.h>

#include <functional>
#include <random>

#include "codegen/generate.hpp"
#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/schedule/split_k.hpp"
#include "emulator/emulator.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/devices.hpp"
#include "support/emulating.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"
#include "support/tensors.hpp"

namespace test_swapped_operands {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, i32, f32>;

/// How a right operand is computed in a k-iteration.
template <class W>
struct Parts {
  const In<W, 2>& w;
  const In<f32, 2>& scale;  ///< [groups of k, n]
  Index k, n;
  MatmulTiles tiles;
  bool nk;

  Tile<W, 2> tile() const {
    if (nk) return transpose(load(w, {n, k}, {tiles.n, tiles.k}));
    return load(w, {k, n}, {tiles.k, tiles.n});
  }
  Tile<f32, 2> of_group() const { return load(scale, {k, n}, {1, tiles.n}); }
};

/// y = x make(w), of operands that are multiplied as M.
template <class X, class W, class M, class O, class Make>
auto matmul_of(const MatmulTiles& tiles, bool nk, const Make& make) {
  return kernel("swapped", [=](In<X, 2> x, In<W, 2> w, In<f32, 2> scale, Out<O, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = zeros<Sum<M>>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k))) {
      const Tile<M, 2> right = make(Parts<W>{w, scale, k, n, tiles, nk});
      acc = mma(cast<M>(load(x, {m, k}, {tiles.m, tiles.k})), right, acc);
    }
    store(y, {m, n}, cast<O>(acc));
  });
}

template <class M>
constexpr auto itself = [](const auto& p) { return Tile<M, 2>(cast<M>(p.tile())); };
const auto weight = [](double w, double) { return w; };

/// With a scale for each group of a k-iteration, and a number that stands for zero.
template <class M>
constexpr auto scaled = [](const auto& p) { return Tile<M, 2>(cast<M>((cast<f32>(p.tile()) - 2.0f) * p.of_group())); };
const auto scaled_weight = [](double w, double scale) { return (w - 2) * scale; };

/// The integers of a tile, and their squares.
template <class M>
constexpr auto with_squares = [](const auto& p) {
  const Tile ws = cast<i32>(p.tile());
  return Tile<M, 2>(cast<M>(ws * ws + ws));
};
const auto weight_with_square = [](double w, double) { return w * w + w; };

struct Sizes {
  int m, n, k;
  bool nk = false;
};

/// Small numbers: accumulators hold their sums, and 16 bits each element of a right operand.
template <class X, class W>
struct Numbers {
  Numbers(const Sizes& of, int tile_k) : of(of), tile_k(tile_k) {
    std::mt19937 rng(static_cast<unsigned>(of.m * 31 + of.n * 7 + of.k));
    const auto fill = [&]<class T>(std::vector<T>& values, int count, std::vector<float> among) {
      for (int i = 0; i < count; ++i) values.push_back(T(among[rng() % among.size()]));
    };
    const bool is_signed = !std::same_as<W, u8>;
    fill(x, of.m * of.k, std::same_as<X, u8> ? std::vector<float>{0, 1, 2, 3} : std::vector<float>{-2, -1, 0, 1, 2});
    fill(w, of.k * of.n, is_signed ? std::vector<float>{-5, -3, -1, 0, 2, 4, 7} : std::vector<float>{0, 1, 2, 3, 5, 9});
    fill(scale, groups() * of.n, {0.5f, 1, 2});
  }
  int groups() const { return (of.k + tile_k - 1) / tile_k; }
  double weight_at(int l, int j) const {
    return static_cast<double>(static_cast<float>(w[static_cast<std::size_t>(of.nk ? j * of.k + l : l * of.n + j)]));
  }

  Sizes of;
  int tile_k;
  std::vector<X> x;
  std::vector<W> w;
  std::vector<f32> scale;
};

using Weight = std::function<double(double, double)>;

/// Empty, or the first result that is not the sum of x times value(w, scale).
template <class X, class W, class O>
std::string difference(const std::vector<O>& y, const Numbers<X, W>& numbers, const Weight& value) {
  const Sizes& of = numbers.of;
  for (int j = 0; j < of.n; ++j) {
    std::vector<double> column;
    for (int l = 0; l < of.k; ++l)
      column.push_back(
          value(numbers.weight_at(l, j), numbers.scale[static_cast<std::size_t>(l / numbers.tile_k * of.n + j)]));
    for (int i = 0; i < of.m; ++i) {
      double sum = 0;
      for (int l = 0; l < of.k; ++l)
        sum += static_cast<double>(static_cast<float>(numbers.x[static_cast<std::size_t>(i) * of.k + l])) *
               column[static_cast<std::size_t>(l)];
      const auto expected = static_cast<float>(O(static_cast<float>(sum))),
                 found = static_cast<float>(y[static_cast<std::size_t>(i) * of.n + j]);
      if (found != expected) return fmt::format("[{},{}] is {}, not {}", i, j, found, expected);
    }
  }
  return {};
}

template <class O>
std::vector<O> nines(const Sizes& of) {
  return std::vector<O>(static_cast<std::size_t>(of.m) * of.n, O(99));
}

template <class X, class W, class M, class O, class Make>
void check(const MatmulTiles& tiles, const Sizes& of, const Make& make, const Weight& value) {
  INFO(fmt::format("tiles of [{},{}] by {}, {}x{}x{}{}, {} times {} as {} to {}", tiles.m, tiles.n, tiles.k, of.m, of.n,
                   of.k, of.nk ? ", right transposed" : "", name(element_type<X>), name(element_type<W>),
                   name(element_type<M>), name(element_type<O>)));
  const auto k = matmul_of<X, W, M, O>(tiles, of.nk, make);
  const Plan plan = plan_with(k.graph());
  INFO(why_not(plan));
  CHECK(has_roles(plan));
  CHECK(count<TmaStore>(plan) > 0);
  const Numbers<X, W> numbers(of, tiles.k);
  const std::array<std::int64_t, 2> of_w =
      of.nk ? std::array<std::int64_t, 2>{of.n, of.k} : std::array<std::int64_t, 2>{of.k, of.n};
  const auto y = tensor<O, 2>({of.m, of.n}, nines<O>(of));
  launch(test_device().stream(), k, tensor<X, 2>({of.m, of.k}, numbers.x), tensor<W, 2>({of_w[0], of_w[1]}, numbers.w),
         tensor<f32, 2>({numbers.groups(), of.n}, numbers.scale), y);
  CHECK(difference(y.to_vector(), numbers, value) == "");
}

}  // namespace

TEST_CASE("swapped operands: tf32 that is not contiguous along k", "[cpu]") {
  Cases cases(9);
  for (const MatmulTiles& tiles : {MatmulTiles{128, 128, 32},
                                   {64, 64, 32},
                                   {256, 128, 32},
                                   {128, 64, 64},
                                   {192, 64, 32},
                                   {96, 128, 32},
                                   {64, 256, 32},
                                   {128, 256, 32},
                                   {64, 128, 64}})
    if (!cases.skip())
      check<f32, f32, tf32, f32>(tiles, {tiles.m + 40, tiles.n + 24, 2 * tiles.k + 8}, itself<tf32>, weight);
  check<f32, f32, tf32, f32>({128, 128, 32}, {8, 8, 32 * 13 + 4}, itself<tf32>, weight);
  check<f32, f32, tf32, f32>({128, 128, 32}, {264, 136, 36}, itself<tf32>, weight);
}

TEST_CASE("swapped operands: integers of 8 bits that are not contiguous along k", "[cpu]") {
  Cases cases(6);
  for (const MatmulTiles& tiles : {MatmulTiles{128, 128, 128},
                                   {256, 128, 128},
                                   {64, 128, 128},
                                   {128, 256, 128},
                                   {192, 128, 128},
                                   {96, 128, 256}}) {
    const Sizes of{tiles.m + 40, tiles.n + 32, 2 * tiles.k + 16};
    if (!cases.skip()) check<i8, i8, i8, i32>(tiles, of, itself<i8>, weight);
  }
  check<u8, u8, u8, i32>({128, 128, 128}, {200, 144, 16}, itself<u8>, weight);
  check<i8, i8, i8, f32>({128, 128, 128}, {16, 16, 128 * 7 + 48}, itself<i8>, weight);
}

TEST_CASE("swapped operands: fp8 that is not contiguous along k", "[cpu]") {
  Cases cases(4);
  for (const MatmulTiles& tiles : {MatmulTiles{128, 128, 128}, {64, 128, 128}, {64, 128, 256}, {96, 128, 128}}) {
    const Sizes of{tiles.m + 40, tiles.n + 32, 2 * tiles.k + 16};
    if (!cases.skip()) check<f8e4m3, f8e4m3, f8e4m3, f32>(tiles, of, itself<f8e4m3>, weight);
  }
  check<f8e5m2, f8e5m2, f8e5m2, bf16>({128, 128, 128}, {16, 144, 128 * 7 + 48}, itself<f8e5m2>, weight);
}

TEST_CASE("left operands of 8 bits that are not contiguous along k come from registers", "[cpu]") {
  const auto check = []<class T, class O>(T, O, const MatmulTiles& tiles, const Sizes& of) {
    INFO(fmt::format("tiles of [{},{}] by {}, {}", tiles.m, tiles.n, tiles.k, name(element_type<T>)));
    const auto k = kernel("left_km", [=](In<T, 2> x, In<T, 2> w, Out<O, 2> y) {
      auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
      Var acc = zeros<Sum<T>>({tiles.m, tiles.n});
      for (Index k : range(cdiv(w.extent(1), tiles.k)))
        acc = mma(transpose(load(x, {k, m}, {tiles.k, tiles.m})), transpose(load(w, {n, k}, {tiles.n, tiles.k})), acc);
      store(y, {m, n}, cast<O>(acc));
    });
    const Plan plan = plan_with(k.graph());
    INFO(why_not(plan));
    CHECK(has_roles(plan));
    const Numbers<T, T> numbers(of, tiles.k);
    std::vector<T> columns;
    for (int l = 0; l < of.k; ++l)
      for (int i = 0; i < of.m; ++i) columns.push_back(numbers.x[static_cast<std::size_t>(i) * of.k + l]);
    const auto y = tensor<O, 2>({of.m, of.n}, nines<O>(of));
    launch(test_device().stream(), k, tensor<T, 2>({of.k, of.m}, columns), tensor<T, 2>({of.n, of.k}, numbers.w), y);
    CHECK(difference(y.to_vector(), numbers, weight) == "");
  };
  check(f8e4m3(), f32(), {128, 128, 128}, {208, 144, 272, true});
  check(f8e5m2(), bf16(), {128, 128, 128}, {144, 200, 400, true});
  check(i8(), i32(), {128, 128, 128}, {144, 136, 400, true});
}

TEST_CASE("swapped operands: weights of 8 bits that are dequantized", "[cpu]") {
  Cases cases(12);
  for (const MatmulTiles& tiles : {MatmulTiles{128, 128, 64}, {256, 128, 64}, {64, 128, 64}, {128, 256, 64}}) {
    const Sizes of{tiles.m + 40, tiles.n + 32, 2 * tiles.k + 16};
    if (!cases.skip()) check<bf16, i8, bf16, bf16>(tiles, of, itself<bf16>, weight);
    if (!cases.skip()) check<f16, u8, f16, f32>(tiles, of, scaled<f16>, scaled_weight);
    if (!cases.skip()) check<bf16, i8, bf16, f32>(tiles, of, with_squares<bf16>, weight_with_square);
  }
  for (const MatmulTiles& tiles : {MatmulTiles{128, 128, 128}, {64, 64, 128}, {128, 256, 128}}) {
    const Sizes of{tiles.m + 40, tiles.n + 24, 2 * tiles.k + 16, true};
    if (!cases.skip()) check<bf16, u8, bf16, bf16>(tiles, of, itself<bf16>, weight);
    if (!cases.skip()) check<f16, i8, f16, f16>(tiles, of, scaled<f16>, scaled_weight);
  }
  check<bf16, f8e4m3, bf16, f32>({128, 128, 64}, {136, 144, 208}, itself<bf16>, weight);
  check<bf16, f8e5m2, bf16, bf16>({64, 128, 128}, {72, 136, 272, true}, itself<bf16>, weight);
  check<bf16, i8, bf16, bf16>({128, 128, 64}, {8, 16, 64 * 9 + 16}, itself<bf16>, weight);
}

TEST_CASE("swapped operands: 16-bit and 32-bit weights that are computed", "[cpu]") {
  check<bf16, f32, bf16, bf16>({128, 128, 64}, {136, 136, 136}, itself<bf16>, weight);
  check<f16, bf16, f16, f16>({64, 128, 64}, {72, 264, 136}, scaled<f16>, scaled_weight);
  check<bf16, f16, bf16, f32>({128, 64, 64}, {264, 72, 200, true}, scaled<bf16>, scaled_weight);
}

// Pairs of 4-bit numbers along k in each byte, [k / 2,n] or [n,k / 2], with a scale for each group of a k-iteration.
TEST_CASE("swapped operands: weights of 4 bits", "[cpu]") {
  const auto check_four = [](const MatmulTiles& tiles, const Sizes& of) {
    INFO(fmt::format("tiles of [{},{}] by {}, {}x{}x{}{}", tiles.m, tiles.n, tiles.k, of.m, of.n, of.k,
                     of.nk ? ", right transposed" : ""));
    const auto k = kernel("four_bits", [=](In<bf16, 2> x, In<u8, 2> w, In<f32, 2> scale, Out<f32, 2> y) {
      auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
      Var acc = zeros<f32>({tiles.m, tiles.n});
      for (Index k : range(cdiv(x.extent(1), tiles.k))) {
        const auto unpacked = [](const Tile<u8, 2>& packed, int axis) {
          const Tile pairs = cast<i32>(packed);
          return Tile<f32, 2>(cast<f32>(interleave(pairs & 15, pairs >> 4, axis) - 8));
        };
        const Tile<f32, 2> weights = of.nk
                                         ? Tile<f32, 2>(transpose(unpacked(load(w, {n, k}, {tiles.n, tiles.k / 2}), 1)))
                                         : unpacked(load(w, {k, n}, {tiles.k / 2, tiles.n}), 0);
        acc = mma(load(x, {m, k}, {tiles.m, tiles.k}), cast<bf16>(weights * load(scale, {k, n}, {1, tiles.n})), acc);
      }
      store(y, {m, n}, acc);
    });
    const Plan plan = plan_with(k.graph());
    INFO(why_not(plan));
    CHECK(has_roles(plan));
    const Numbers<bf16, u8> numbers(of, tiles.k);
    std::vector<u8> packed(numbers.w.size() / 2);
    for (int l = 0; l < of.k; ++l)
      for (int j = 0; j < of.n; ++j) {
        u8& both = packed[static_cast<std::size_t>(of.nk ? j * (of.k / 2) + l / 2 : l / 2 * of.n + j)];
        both = static_cast<u8>(both | static_cast<int>(numbers.weight_at(l, j)) << l % 2 * 4);
      }
    const int rows = of.nk ? of.n : of.k / 2, columns = of.nk ? of.k / 2 : of.n;
    const auto y = tensor<f32, 2>({of.m, of.n}, nines<f32>(of));
    launch(test_device().stream(), k, tensor<bf16, 2>({of.m, of.k}, numbers.x), tensor<u8, 2>({rows, columns}, packed),
           tensor<f32, 2>({numbers.groups(), of.n}, numbers.scale), y);
    CHECK(difference(y.to_vector(), numbers, [](double w, double scale) { return (w - 8) * scale; }) == "");
  };
  check_four({128, 128, 64}, {136, 144, 208});
  check_four({256, 128, 64}, {264, 144, 144});
  check_four({64, 128, 128}, {72, 272, 288});
  check_four({64, 64, 256}, {72, 72, 288, true});
  check_four({64, 128, 256}, {72, 136, 544, true});
}

// All that follows the loop takes transposes of the accumulators: bias, scales of rows and columns, a residual, and two
// stores.
TEST_CASE("swapped operands: epilogues", "[cpu]") {
  const auto k = kernel("epilogue", [](In<bf16, 2> x, In<i8, 2> w, In<f32, 2> of_rows, In<f32, 1> of_columns,
                                       In<f32, 2> added, Out<f32, 2> y, Out<f32, 2> z) {
    auto [m, n] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 128));
    Var acc = zeros<f32>({128, 128});
    for (Index k : range(cdiv(x.extent(1), 64)))
      acc = mma(load(x, {m, k}, {128, 64}), cast<bf16>(load(w, {k, n}, {64, 128})), acc);
    const Tile columns = load(of_columns, {n}, {128});
    const Tile result = acc * load(of_rows, {m, 0}, {128, 1}) + columns + load(added, {m, n}, {128, 128});
    store(y, {m, n}, result);
    store(z, {m, n}, maximum(result, 0.0f));
  });
  const Plan plan = plan_with(k.graph());
  INFO(why_not(plan));
  CHECK(has_roles(plan));
  const Sizes of{200, 272, 144};
  const Numbers<bf16, i8> numbers(of, 64);
  std::vector<f32> rows, columns, added;
  for (int i = 0; i < of.m; ++i) rows.push_back(static_cast<float>(i % 3 - 1));
  for (int j = 0; j < of.n; ++j) columns.push_back(static_cast<float>(j % 5));
  for (int i = 0; i < of.m * of.n; ++i) added.push_back(static_cast<float>(i % 7 - 3));
  const auto y = tensor<f32, 2>({of.m, of.n}, nines<f32>(of)), z = tensor<f32, 2>({of.m, of.n}, nines<f32>(of));
  launch(test_device().stream(), k, tensor<bf16, 2>({of.m, of.k}, numbers.x), tensor<i8, 2>({of.k, of.n}, numbers.w),
         tensor<f32, 2>({of.m, 1}, rows), tensor<f32, 1>({of.n}, columns), tensor<f32, 2>({of.m, of.n}, added), y, z);
  const std::vector<f32> ys = y.to_vector(), zs = z.to_vector();
  std::vector<f32> sums(ys.size());
  for (int i = 0; i < of.m; ++i)
    for (int j = 0; j < of.n; ++j) {
      const std::size_t at = static_cast<std::size_t>(i) * of.n + j;
      CHECK_FALSE((zs[at] != std::max(ys[at], 0.0f)));
      double sum = 0;
      for (int l = 0; l < of.k; ++l)
        sum += static_cast<double>(static_cast<float>(numbers.x[static_cast<std::size_t>(i) * of.k + l])) *
               numbers.weight_at(l, j);
      sums[at] = static_cast<float>(sum * rows[static_cast<std::size_t>(i)] + columns[static_cast<std::size_t>(j)] +
                                    added[at]);
    }
  CHECK(sums == ys);
}

// Two matmuls that share the left operand, each with weights of its own, as in a gated MLP.
TEST_CASE("swapped operands: several matmuls of a loop", "[cpu]") {
  const auto k = kernel("gated", [](In<bf16, 2> x, In<i8, 2> w, In<i8, 2> v, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 128));
    Var gate = zeros<f32>({64, 128}), up = full<f32>({64, 128}, 1);
    for (Index k : range(cdiv(x.extent(1), 64))) {
      const Tile left = load(x, {m, k}, {64, 64});
      gate = mma(left, cast<bf16>(load(w, {k, n}, {64, 128})), gate);
      up = mma(left, cast<bf16>(load(v, {k, n}, {64, 128})), up);
    }
    store(y, {m, n}, gate * 1024.0f + up);
  });
  const Plan plan = plan_with(k.graph());
  INFO(why_not(plan));
  CHECK(has_roles(plan));
  const Sizes of{72, 144, 144};
  const Numbers<bf16, i8> numbers(of, 64);
  std::vector<i8> ones(numbers.w.size(), 1);
  const auto y = tensor<f32, 2>({of.m, of.n}, nines<f32>(of));
  launch(test_device().stream(), k, tensor<bf16, 2>({of.m, of.k}, numbers.x), tensor<i8, 2>({of.k, of.n}, numbers.w),
         tensor<i8, 2>({of.k, of.n}, ones), y);
  std::vector<f32> less = y.to_vector();
  for (f32& sum : less) sum -= 1;
  CHECK(difference(less, numbers, [](double w, double) { return 1024 * w + 1; }) == "");
}

// Two matmuls with weights of 4 bits, interleaved in either order: both need to know which k are odd.
TEST_CASE("swapped operands: several matmuls of 4-bit weights", "[cpu]") {
  const auto k = kernel("gated_four_bits", [](In<bf16, 2> x, In<u8, 2> w, Out<f32, 2> y, Out<f32, 2> z) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 128));
    Var low_first = zeros<f32>({64, 128}), high_first = zeros<f32>({64, 128});
    for (Index k : range(cdiv(x.extent(1), 64))) {
      const Tile left = load(x, {m, k}, {64, 64});
      const Tile pairs = cast<i32>(load(w, {k, n}, {32, 128}));
      low_first = mma(left, cast<bf16>(interleave(pairs & 15, pairs >> 4, 0)), low_first);
      high_first = mma(left, cast<bf16>(interleave(pairs >> 4, pairs & 15, 0)), high_first);
    }
    store(y, {m, n}, low_first);
    store(z, {m, n}, high_first);
  });
  const Plan plan = plan_with(k.graph());
  INFO(why_not(plan));
  CHECK(has_roles(plan));
  const Sizes of{72, 144, 144};
  const Numbers<bf16, u8> numbers(of, 64);
  std::vector<u8> packed(numbers.w.size() / 2);
  for (int l = 0; l < of.k; ++l)
    for (int j = 0; j < of.n; ++j) {
      u8& both = packed[static_cast<std::size_t>(l / 2 * of.n + j)];
      both = static_cast<u8>(both | static_cast<int>(numbers.weight_at(l, j)) << l % 2 * 4);
    }
  Numbers<bf16, u8> exchanged = numbers;
  for (int l = 0; l < of.k; ++l)
    for (int j = 0; j < of.n; ++j)
      exchanged.w[static_cast<std::size_t>(l * of.n + j)] = static_cast<u8>(numbers.weight_at(l ^ 1, j));
  const auto y = tensor<f32, 2>({of.m, of.n}, nines<f32>(of)), z = tensor<f32, 2>({of.m, of.n}, nines<f32>(of));
  launch(test_device().stream(), k, tensor<bf16, 2>({of.m, of.k}, numbers.x), tensor<u8, 2>({of.k / 2, of.n}, packed),
         y, z);
  CHECK(difference(y.to_vector(), numbers, weight) == "");
  CHECK(difference(z.to_vector(), exchanged, weight) == "");
}

// The right operand is a value from before the loop.
TEST_CASE("swapped operands: one that is the same in all k-iterations", "[cpu]") {
  const auto k = kernel("fixed", [](In<bf16, 2> x, In<f32, 2> w, Out<f32, 2> y) {
    const Index m = blocks(cdiv(y.extent(0), 64));
    Var acc = zeros<f32>({64, 64});
    const Tile right = cast<bf16>(load(w, {0, 0}, {64, 64}) * 2.0f);
    for (Index k : range(cdiv(x.extent(1), 64))) acc = mma(load(x, {m, k}, {64, 64}), right, acc);
    store(y, {m, 0}, acc);
  });
  CHECK(why_not(plan_with(k.graph())) == "");
  const Sizes of{72, 64, 64};
  const Numbers<bf16, f32> numbers(of, 64);
  const auto y = tensor<f32, 2>({of.m, of.n}, nines<f32>(of));
  launch(test_device().stream(), k, tensor<bf16, 2>({of.m, of.k}, numbers.x), tensor<f32, 2>({of.k, of.n}, numbers.w), y);
  CHECK(difference(y.to_vector(), numbers, [](double w, double) { return 2 * w; }) == "");
}

// The loop needs them as they are.
TEST_CASE("swapped operands: not where a loop also reads its accumulators", "[plan]") {
  const auto k = kernel("read", [](In<bf16, 2> x, In<i8, 2> w, Out<f32, 2> y, Out<f32, 2> z) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 128));
    Var acc = zeros<f32>({64, 128});
    for (Index k : range(cdiv(x.extent(1), 64))) {
      store(z, {m, n}, acc);
      acc = mma(load(x, {m, k}, {64, 64}), cast<bf16>(load(w, {k, n}, {64, 128})), acc);
    }
    store(y, {m, n}, acc);
  });
  CHECK(why_not(plan_with(k.graph())) == "the loop carries more than the accumulators");
}

TEST_CASE("swapped operands: which rows of a warp a lane has", "[plan]") {
  const auto order_of = [](const Plan& plan) {
    const Value& sums = plan.values[the<Wgmma>(const_cast<Plan&>(plan)).out];
    for (const RowOrder order : row_orders)
      if (sums.layout == wgmma_accumulator_layout(sums.shape, plan.phases[0].roles[1].warps / 4, order)) return order;
    return RowOrder::natural;
  };
  const MatmulTiles bytes{128, 128, 128}, halves{128, 128, 64}, words{128, 128, 32};
  CHECK(order_of(plan_with(matmul_of<i8, i8, i8, i32>(bytes, false, itself<i8>).graph())) == RowOrder::paired);
  CHECK(order_of(plan_with(matmul_of<bf16, i8, bf16, bf16>(halves, false, itself<bf16>).graph())) == RowOrder::paired);
  CHECK(order_of(plan_with(matmul_of<bf16, i8, bf16, bf16>(bytes, true, itself<bf16>).graph())) == RowOrder::natural);
  CHECK(order_of(plan_with(matmul_of<f32, f32, tf32, f32>(words, false, itself<tf32>).graph())) == RowOrder::spread);
  // stmatrix stores no transposes of another order.
  CHECK(order_of(plan_with(matmul_of<bf16, f32, bf16, bf16>(halves, true, itself<bf16>).graph())) == RowOrder::natural);
  // A lane reads two neighbors.
  const Layout spread = wgmma_operand_layout({128, 32}, 2, ElementType::tf32, RowOrder::spread);
  CHECK(spread.run(0) == 2);
  CHECK(to_string(wgmma_accumulator_layout({64, 8}, 1, RowOrder::paired)) ==
        "warp 4, lane 8/4, reg 2/2 | lane 4, reg 2");
}

// An addition converts integers of which 22 bits and a sign are known to suffice.
TEST_CASE("integers that are known to be small are converted to reals by an addition", "[plan]") {
  const auto converts = [](const auto& make) {
    const Graph graph = run_passes(kernel("converts", [&](In<i32, 1> x, In<i16, 1> h, Out<f32, 1> y) {
                                     const Index i = blocks(cdiv(y.extent(0), 128));
                                     store(y, {i}, cast<f32>(make(load(x, {i}, {128}), cast<i32>(load(h, {i}, {128})))));
                                   }).graph());
    const std::string text = generate(graph, dense_variant(graph), Arch::sm_80, {}).text;
    return text.find("small_to_real(", text.find("extern \"C\"")) != std::string::npos;
  };
  using I = Tile<i32, 1>;
  CHECK_FALSE(converts([](const I& x, const I&) { return x; }));
  CHECK(converts([](const I&, const I& h) { return h; }));
  CHECK(converts([](const I& x, const I&) { return I(x & 15); }));
  CHECK(converts([](const I& x, const I&) { return I((x & 0x3fffff) - 0x400000); }));
  CHECK_FALSE(converts([](const I& x, const I&) { return I((x & 0x3fffff) - 0x400001); }));
  CHECK(converts([](const I& x, const I&) { return I(x >> 9); }));
  CHECK_FALSE(converts([](const I& x, const I&) { return I(x >> 8); }));
  CHECK(converts([](const I&, const I& h) { return I(h * 64); }));
  CHECK_FALSE(converts([](const I&, const I& h) { return I(h * 256); }));
  CHECK(converts([](const I& x, const I& h) { return I(where(x > 0, h, minimum(maximum(x, -9), 9))); }));
  CHECK_FALSE(converts([](const I& x, const I& h) { return I(where(x > 0, h, x)); }));
}

TEST_CASE("the verifier reports errors of swapped operands", "[plan]") {
  const Graph bytes = matmul_of<bf16, i8, bf16, bf16>({128, 128, 64}, false, itself<bf16>).graph(),
              halves = matmul_of<bf16, f32, bf16, bf16>({128, 128, 64}, false, itself<bf16>).graph();
  const PlantedFault of_bytes[] = {
      {"bytes of a transposed tile are read one by one", [](Plan& p) { the<LoadFragment>(p).by_matrix = false; },
       "is read not by ldmatrix"},
      {"rows of the natural order",
       [](Plan& p) {
    Value& left = p.values[the<Wgmma>(p).left];
    left.layout = wgmma_operand_layout(left.shape, 1, ElementType::bf16);
       },
       "the sweep is over"},
      {"accumulators in the natural order",
       [](Plan& p) {
    Value& sums = p.values[the<Wgmma>(p).out];
    sums.layout = wgmma_accumulator_layout(sums.shape, 1);
       },
       "is multiplied"},
      {"integers are taken for reals", [](Plan& p) { the<LoadFragment>(p).to_reals = false; },
       "the elements are i8, the result is bf16"},
      {"a store between two panels", [](Plan& p) { the<TmaStore>(p).offset = 64; },
       "no panel of staged0 begins at byte 64"},
      {"a store behind the last panel", [](Plan& p) { the<TmaStore>(p).offset = 1 << 20; }, "no panel of staged0 begins"},
      {"pairs of the other order are stored as matrices",
       [](Plan& p) {
    StoreShared& store = the<StoreShared>(p);
    store.by = StoreShared::By::matrix_transposed;
    store.sweep.vector = 8;
       },
       "is not the layout of transposed wgmma accumulators"},
  };
  check_reported(plan_with(bytes), of_bytes);
  const PlantedFault of_halves[] = {
      {"transposes are stored as they are", [](Plan& p) { the<StoreShared>(p).by = StoreShared::By::matrix; },
       "is not the layout of wgmma accumulators"},
  };
  check_reported(plan_with(halves), of_halves);
}

#ifdef TESSERA_HAS_EMULATOR
namespace {

/// A kernel of generated code for the emulator, of weights of 8 bits with a scale for each k-iteration.
struct Emulated {
  static constexpr MatmulTiles tiles{128, 128, 64};
  const Sizes of{136, 144, 64 * 9 + 16};
  Graph graph = run_passes(matmul_of<bf16, u8, bf16, f32>(tiles, false, scaled<bf16>).graph());
  Numbers<bf16, u8> numbers{of, tiles.k};
  std::vector<f32> y = nines<f32>(of);

  Plan plan(const Changes& change = {}) const {
    Variant variant = dense_variant(graph);
    if (change) change(variant);
    return make_plan(graph, variant, Arch::sm_90a, {.verify = true});
  }
  std::string run(const Emulator& emulator, std::size_t kernel, const RunOptions& options) {
    y = nines<f32>(of);
    const std::vector<Argument> arguments{
        dense_argument(numbers.x, {of.m, of.k}), dense_argument(numbers.w, {of.k, of.n}),
        dense_argument(numbers.scale, {numbers.groups(), of.n}), dense_argument(y, {of.m, of.n})};
    return emulator.run(kernel, graph, arguments, std::vector<std::int64_t>{2, 2}, options).text();
  }
  std::string difference() const { return test_swapped_operands::difference(y, numbers, scaled_weight); }
};

}  // namespace

TEST_CASE("CTAs that share the k-iterations of swapped operands sum exactly", "[emulator]") {
  Emulated kernel;
  const auto shared = [&](SplitK how) {
    const Plan plan = kernel.plan([=](Variant& variant) { variant.split_k = how; });
    CHECK(notes(plan)[0].find(how == SplitK::cluster ? "split-K in clusters" : "stream-K") != std::string::npos);
    return kernel_source(plan);
  };
  const std::vector<KernelSource> sources{shared(SplitK::cluster), shared(SplitK::stream_k)};
  const Emulator emulator = Emulator::compile(sources);
  CHECK(kernel.run(emulator, 0, {.blocks_in_flight = 2, .persistent_blocks = 2, .cluster = 3}) == "");
  CHECK(kernel.difference() == "");
  CHECK(kernel.run(emulator, 1, {.blocks_in_flight = 2, .persistent_blocks = 5}) == "");
  CHECK(kernel.difference() == "");
}

TEST_CASE("faults in swapped operands are found without the verifier", "[emulator]") {
  Emulated kernel;
  struct Planted {
    std::string_view name;
    std::function<void(Plan&)> plant;
  };
  const Planted faults[] = {
      {"the first panel is stored again", [](Plan& p) { the<TmaStore>(p, 1).offset = 0; }},
      {"a part is stored where the one before is",
       [](Plan& p) {
    const std::vector<StepPlace> stores = places_of<TmaStore>(p);
    TmaStore& later = stores.back().step().action.get<TmaStore>();
    for (TileCoordinate& at : later.at) at.offset = std::max(0, at.offset - 32);
       }},
      {"rows of the next k-iteration are not passed on",
       [](Plan& p) {
    const auto writes = [&](const StepPlace& place) {
      const Compute& copy = place.step().action.get<Compute>();
      return copy.sweep.expression.terms.size() == 1 && copy.sweep.expression.terms[0].op == Op::broadcast &&
             p.storage(copy.out).changes && p.storage(copy.out).packed == 1;
    };
    for (const StepPlace& place : places_of<Compute>(p))
      if (writes(place)) return place.drop();
       }},
  };
  const Plan right = kernel.plan();
  std::vector<KernelSource> sources{kernel_source(right)};
  for (const Planted& fault : faults) {
    Plan plan = right;
    fault.plant(plan);
    sources.push_back(kernel_source(plan));
  }
  const Emulator emulator = Emulator::compile(sources);
  const RunOptions one_block{.persistent_blocks = 1};
  CHECK(kernel.run(emulator, 0, one_block) == "");
  CHECK(kernel.difference() == "");
  for (std::size_t i = 0; i < std::size(faults); ++i) {
    INFO(faults[i].name);
    const std::string report = kernel.run(emulator, i + 1, one_block);
    CHECK((!report.empty() || !kernel.difference().empty()));
  }
}
#endif

}  // namespace test_swapped_operands
