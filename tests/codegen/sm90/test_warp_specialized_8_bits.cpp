// Warp-specialized matmuls of 8-bit operands: wgmma takes fp8 and integers as they are, if both run along k, and sums
// of fp8 products are promoted to f32. On any device, compared with exact sums.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "matmuls_8_bits.hpp"
#include "support/catch.hpp"

namespace test_warp_specialized_8_bits {

using namespace matmuls_8_bits;

namespace {

/// On the test's device.
template <class T, class O>
void check_plain(const MatmulTiles& tiles, const Sizes& of, bool by_wgmma = true) {
  INFO(fmt::format("{}, {} to {}", text(tiles, of), name(element_type<T>), name(element_type<O>)));
  const auto kernel = plain<T, O>(tiles);
  CHECK((why_not(kernel.graph(), by_wgmma ? Changes() : unaligned(0)) == "") == by_wgmma);
  const Problem<T> problem(of);
  const Tensor<O, 2> y = result<O>(of);
  launch(test_device().stream(), kernel, problem.x(), problem.w(), y);
  CHECK(problem.difference(y.to_vector()) == "");
}

// Extents beyond whole tiles; a single k-iteration, few, and more than stages.
constexpr Sizes ragged{200, 136, 300}, single{40, 72, 100}, odd{129, 67, 259};

}  // namespace

TEST_CASE("warp-specialized matmul: fp8, every tile", "[cpu]") {
  Cases cases(30);
  int number = 0;
  for (const int m : {64, 128})
    for (const int n : {64, 96, 128, 192, 256})
      for (const int k : {128, 256, 384, 512}) {
        const int bytes = 2 * (m + n) * k;
        if (bytes > 220000 || (k == 384 && n > 64) || cases.skip()) continue;
        const Sizes of{m + 40, n + 24, 2 * k + 24, number % 2 ? Numbers::small : Numbers::positive};
        switch (number++ % 4) {
          case 0:
            check_plain<f8e4m3, f32>({m, n, k}, of);
            break;
          case 1:
            check_plain<f8e5m2, bf16>({m, n, k}, of);
            break;
          case 2:
            check_plain<f8e4m3, bf16>({m, n, k}, of);
            break;
          default:
            check_plain<f8e5m2, f32>({m, n, k}, of);
        }
      }
}

TEST_CASE("warp-specialized matmul: integers of 8 bits, every tile", "[cpu]") {
  Cases cases(30);
  int number = 0;
  for (const int m : {64, 128, 256})
    for (const int n : {64, 96, 128, 192, 256})
      for (const int k : {128, 256, 384, 512}) {
        const int bytes = 2 * (m + n) * k;
        if (bytes > 150000 || (m == 256 && n > 128) || (k == 384 && n > 64) || cases.skip()) continue;
        const Sizes of{m + 40, n + 24, 2 * k + 24, Numbers::all};
        switch (number++ % 4) {
          case 0:
            check_plain<i8, i32>({m, n, k}, of);
            break;
          case 1:
            check_plain<u8, i32>({m, n, k}, of);
            break;
          case 2:
            check_plain<i8, f32>({m, n, k}, of);
            break;
          default:
            check_plain<u8, f32>({m, n, k}, of);
        }
      }
}

TEST_CASE("warp-specialized matmul: 8 bits, few rows, and many k-iterations", "[cpu]") {
  Cases cases(14);
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 128}, {128, 256, 128}, {64, 128, 256}})
    for (const Sizes& of : {Sizes{1, 72, 400}, {16, 8, 272}, {56, 200, 4}, odd}) {
      if (!cases.skip()) check_plain<f8e4m3, f32>(tiles, of);
    }
  check_plain<f8e4m3, f32>({64, 64, 128}, {64 * 7, 64 * 3, 128});
  check_plain<f8e5m2, f32>({64, 64, 128}, {72, 40, 128 * 19 + 40, Numbers::positive});  // few CTAs split them
  check_plain<i8, i32>({128, 128, 128}, {136, 40, 128 * 9 + 48, Numbers::all});
  check_plain<u8, i32>({64, 64, 512}, {40, 64, 512 * 5, Numbers::all});
}

TEST_CASE("matmuls of 8 bits that wgmma does not take are exact, too", "[cpu]") {
  check_plain<f8e4m3, f32>({64, 64, 128}, {.m = 72, .n = 136, .k = 300, .numbers = Numbers::positive, .gap = 1}, false);
  check_plain<f8e5m2, bf16>({64, 64, 128}, {.m = 136, .n = 72, .k = 131, .gap = 2}, false);
  check_plain<i8, i32>({64, 64, 128}, {.m = 72, .n = 136, .k = 301, .numbers = Numbers::all, .gap = 0}, false);
}

TEST_CASE("warp-specialized matmul: 8 bits, scales of rows and columns", "[cpu]") {
  const auto check = []<class T>(T, const MatmulTiles& tiles, const Sizes& of) {
    INFO(text(tiles, of));
    const auto kernel = scaled<T, bf16>(tiles);
    CHECK(why_not(kernel.graph()) == "");
    const Problem<T> problem(of);
    const std::vector<f32> rows = multiples<f32>(of.m, 5, 0.25), columns = multiples<f32>(of.n, 9, 2);
    const Tensor<bf16, 2> y = result<bf16>(of);
    launch(test_device().stream(), kernel, problem.x(), problem.w(), tensor<f32, 2>({of.m, 1}, rows),
           tensor<f32, 1>({of.n}, columns), y);
    CHECK(problem.difference(y.to_vector(), [&](int i, int j, double sum) {
      return sum * rows[static_cast<std::size_t>(i)] * columns[static_cast<std::size_t>(j)];
    }) == "");
  };
  check(f8e4m3(), {128, 128, 128}, ragged);
  check(f8e5m2(), {64, 192, 128}, odd);
  check(i8(), {128, 128, 128}, ragged);
}

TEST_CASE("warp-specialized matmul: 8 bits, sums that begin with a bias", "[cpu]") {
  const auto check = []<class T>(T, const MatmulTiles& tiles, const Sizes& of, const std::vector<Sum<T>>& bias) {
    INFO(text(tiles, of));
    const auto kernel = biased<T>(tiles);
    CHECK(why_not(kernel.graph()) == "");
    const Problem<T> problem(of);
    const Tensor<Sum<T>, 2> y = result<Sum<T>>(of);
    launch(test_device().stream(), kernel, problem.x(), problem.w(), tensor<Sum<T>, 1>({of.n}, bias), y);
    CHECK(problem.difference(y.to_vector(), [&](int, int j, double sum) {
      const double exact = sum + bias[static_cast<std::size_t>(j)];
      if constexpr (std::is_integral_v<T>)  // sums wrap around
        return static_cast<double>(static_cast<i32>(static_cast<std::uint32_t>(static_cast<std::int64_t>(exact))));
      else
        return exact;
    }) == "");
  };
  check(f8e4m3(), {128, 128, 128}, ragged, multiples<f32>(ragged.n, 17, 100));
  check(f8e5m2(), {64, 64, 512}, single, multiples<f32>(single.n, 17));
  std::vector<i32> edges;
  for (int j = 0; j < ragged.n; ++j)
    edges.push_back(j % 2 ? std::numeric_limits<i32>::max() - j : std::numeric_limits<i32>::min() + j);
  check(i8(), {128, 128, 128}, {ragged.m, ragged.n, ragged.k, Numbers::all}, edges);
}

TEST_CASE("warp-specialized matmul: 8 bits, two in one loop", "[cpu]") {
  const auto check = []<class T>(T, const MatmulTiles& tiles, const Sizes& of) {
    INFO(text(tiles, of));
    const auto kernel = gated<T>(tiles);
    const Plan plan = plan_with(kernel.graph());
    CHECK(why_not(plan) == "");
    CHECK(plan.tensor_maps.size() == 5);  // the shared operand is loaded once
    Problem<T> gate(of), up({of.m, of.n, of.k, of.numbers, of.gap, 1});
    const Tensor<Sum<T>, 2> y = result<Sum<T>>(of), z = result<Sum<T>>(of);
    launch(test_device().stream(), kernel, gate.x(), gate.w(), up.w(), y, z);
    CHECK(gate.difference(y.to_vector()) == "");
    up.x_values() = gate.x_values();
    const Tensor<Sum<T>, 2> expected = result<Sum<T>>(of);
    launch(test_device().stream(), plain<T, Sum<T>>(tiles), up.x(), up.w(), expected);
    CHECK(z.to_vector() == expected.to_vector());
  };
  check(f8e4m3(), {64, 128, 128}, ragged);
  check(f8e5m2(), {64, 64, 256}, odd);
  check(i8(), {64, 128, 128}, ragged);
}

TEST_CASE("warp-specialized matmul: fp8 of infinities and NaN", "[cpu]") {
  const Sizes of{72, 72, 300, Numbers::positive};
  Problem<f8e5m2> problem(of);
  const float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {infinity, -infinity, std::nanf("")};
  for (const int i : {0, 1, 2}) problem.x_values()[problem.x_at(20 * i, 130 * i)] = f8e5m2(special[i]);
  const Tensor<f32, 2> y = result<f32>(of);
  launch(test_device().stream(), plain<f8e5m2, f32>({64, 64, 128}), problem.x(), problem.w(), y);
  CHECK(problem
            .difference(y.to_vector(), [&](int i, int, double sum) {
    return i == 0 ? infinity : i == 20 ? -infinity : i == 40 ? 0 : sum;
  }).starts_with("[40,0] is nan"));
  std::vector<f32> others = y.to_vector();
  for (int j = 0; j < of.n; ++j) {
    float& number = others[static_cast<std::size_t>(40 * of.n + j)];
    CHECK(std::isnan(number));
    number = 0;
  }
  CHECK(problem.difference(others, [&](int i, int, double sum) {
    return i == 0 ? infinity : i == 20 ? -infinity : i == 40 ? 0 : sum;
  }) == "");
}

TEST_CASE("warp-specialized matmul: errors of fp8", "[cpu]") {
  const auto check = []<class T>(T, const MatmulTiles& tiles) {
    const Problem<T> problem({136, 136, 1100, Numbers::fractional});
    const Tensor<f32, 2> y = result<f32>(problem.sizes());
    launch(test_device().stream(), plain<T, f32>(tiles), problem.x(), problem.w(), y);
    const auto [most, mean] = problem.errors(y.to_vector());
    CHECK(most < 0x1p-6);
    CHECK(mean < 0x1p-9);
  };
  check(f8e4m3(), {128, 128, 128});
  check(f8e5m2(), {64, 128, 256});
}

}  // namespace test_warp_specialized_8_bits
