// Warp-specialized matmuls of 8-bit operands: wgmma takes fp8 and integers as they are, if both run along k, and sums
// of fp8 products are promoted to f32. On any device and in the emulator compared with exact sums; the plan's steps;
// and how planted faults are reported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "codegen/generate.hpp"
#include "codegen/kernel_source.hpp"
#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/plan_text.hpp"
#include "codegen/plan/remarks.hpp"
#include "codegen/schedule/split_k.hpp"
#include "emulator/emulator.hpp"
#include "jit/launch/matmul_tiles.hpp"
#include "support/catch.hpp"
#include "support/compiled_device.hpp"
#include "support/devices.hpp"
#include "support/emulating.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/planted_faults.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

namespace test_warp_specialized_8_bits {

using namespace tessera::internal;
using namespace tessera::internal::codegen;

namespace {

using ::why_not;
std::string why_not(const Graph& traced, const Changes& change = {}) { return why_not(plan_with(traced, change)); }
Changes split(SplitK how) {
  return [=](Variant& variant) { variant.split_k = how; };
}
Changes along(std::size_t tensor, int axis) {
  return [=](Variant& variant) { variant.tensors[tensor].contiguous_axis = static_cast<std::int8_t>(axis); };
}
/// The tensor's rows begin at any multiple of so many bytes.
Changes unaligned(std::size_t tensor, int bytes = 1) {
  return [=](Variant& variant) {
    variant.tensors[tensor].alignment = variant.tensors[tensor].row_alignment = static_cast<std::int8_t>(bytes);
    variant.tensors[tensor].tma_addressable = false;
  };
}

// --- kernels: x is [m,k], w is [n,k]

template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, i32, f32>;

template <class T>
Tile<T, 2> left(const In<T, 2>& x, const Index& m, const Index& k, const MatmulTiles& tiles) {
  return load(x, {m, k}, {tiles.m, tiles.k});
}
template <class T>
Tile<T, 2> right(const In<T, 2>& w, const Index& n, const Index& k, const MatmulTiles& tiles) {
  return transpose(load(w, {n, k}, {tiles.n, tiles.k}));
}
template <class T>
Tile<Sum<T>, 2> product(const In<T, 2>& x, const In<T, 2>& w, const Index& m, const Index& n,
                        const MatmulTiles& tiles) {
  Var acc = zeros<Sum<T>>({tiles.m, tiles.n});
  for (Index k : range(cdiv(x.extent(1), tiles.k))) acc = mma(left(x, m, k, tiles), right(w, n, k, tiles), acc);
  return acc;
}

template <class T, class O>
auto plain(MatmulTiles tiles) {
  return kernel("plain", [=](In<T, 2> x, In<T, 2> w, Out<O, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    store(y, {m, n}, cast<O>(product(x, w, m, n, tiles)));
  });
}
/// With a scale for each row of x and each row of w.
template <class T, class O>
auto scaled(MatmulTiles tiles) {
  return kernel("scaled", [=](In<T, 2> x, In<T, 2> w, In<f32, 2> x_scale, In<f32, 1> w_scale, Out<O, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const Tile sums = cast<f32>(product(x, w, m, n, tiles));
    store(y, {m, n}, cast<O>(sums * load(x_scale, {m, 0}, {tiles.m, 1}) * load(w_scale, {n}, {tiles.n})));
  });
}
/// The sums begin with a bias for each column.
template <class T>
auto biased(MatmulTiles tiles) {
  return kernel("biased", [=](In<T, 2> x, In<T, 2> w, In<Sum<T>, 1> bias, Out<Sum<T>, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = zeros<Sum<T>>({tiles.m, tiles.n}) + load(bias, {n}, {tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k))) acc = mma(left(x, m, k, tiles), right(w, n, k, tiles), acc);
    store(y, {m, n}, acc);
  });
}
/// Two matmuls in one loop, which share x.
template <class T>
auto gated(MatmulTiles tiles) {
  return kernel("gated", [=](In<T, 2> x, In<T, 2> w, In<T, 2> v, Out<Sum<T>, 2> y, Out<Sum<T>, 2> z) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var gate = zeros<Sum<T>>({tiles.m, tiles.n}), up = zeros<Sum<T>>({tiles.m, tiles.n});
    for (Index k : range(cdiv(x.extent(1), tiles.k))) {
      const Tile a = left(x, m, k, tiles);
      gate = mma(a, right(w, n, k, tiles), gate);
      up = mma(a, right(v, n, k, tiles), up);
    }
    store(y, {m, n}, gate);
    store(z, {m, n}, up);
  });
}

// --- operands and results

enum class Numbers : std::uint8_t {
  small,     ///< whole, at most 7: sums of 128 products stay below 2^13, so wgmma sums them exactly
  positive,  ///< the same, from 1 on: sums of more products than 128 need more than the 14 bits that wgmma keeps
  all,       ///< all integers
  fractional,
};

struct Sizes {
  int m, n, k;
  Numbers numbers = Numbers::small;
  int gap = -1;  ///< elements after each row of operands; -1: up to the next multiple of 16
  unsigned seed = 0;
};

/// Operands, and their product in double precision, where it is exact for whole numbers.
template <class T>
class Problem {
 public:
  explicit Problem(const Sizes& of)
      : of_(of), stride_(of.k + (of.gap < 0 ? (16 - of.k % 16) % 16 : of.gap)), sums_(matrix()), sizes_(matrix()) {
    std::mt19937 random(static_cast<unsigned>(of.m * 31 + of.n * 7 + of.k) + of.seed);
    const std::vector<double> a = fill(x_, of.m, random), b = fill(w_, of.n, random);
    for (int i = 0; i < of.m; ++i)
      for (int j = 0; j < of.n; ++j) {
        double sum = 0, size = 0;
        for (int l = 0; l < of.k; ++l) {
          const double product = a[static_cast<std::size_t>(i * of.k + l)] * b[static_cast<std::size_t>(j * of.k + l)];
          sum += product;
          size += std::abs(product);
        }
        sums_[at(i, j)] = sum, sizes_[at(i, j)] = size;
      }
  }

  const Sizes& sizes() const { return of_; }
  /// On the test's device.
  Tensor<T, 2> x() const { return on_device(x_, of_.m); }
  Tensor<T, 2> w() const { return on_device(w_, of_.n); }
  Argument x_argument() { return argument(x_, of_.m); }
  Argument w_argument() { return argument(w_, of_.n); }
  /// The place of an element of x.
  std::size_t x_at(int i, int l) const { return static_cast<std::size_t>(i * stride_ + l); }
  std::vector<T>& x_values() { return x_; }

  using Expected = std::function<double(int i, int j, double sum)>;
  /// Empty, or the first element of y that differs from the one expected, rounded to its type.
  template <class O>
  std::string difference(const std::vector<O>& y, const Expected& expected) const {
    for (int i = 0; i < of_.m; ++i)
      for (int j = 0; j < of_.n; ++j) {
        const double exact = expected(i, j, sums_[at(i, j)]), found = number(y[at(i, j)]);
        const double rounded = std::is_integral_v<O> ? exact : number(O(static_cast<float>(exact)));
        if (found != rounded) return fmt::format("[{},{}] is {}, not {}", i, j, found, rounded);
      }
    return {};
  }
  template <class O>
  std::string difference(const std::vector<O>& y) const {
    return difference(y, [](int, int, double sum) { return sum; });
  }
  struct Errors {
    double most = 0, mean = 0;
  };
  /// Relative to the sum of the products' absolute values.
  Errors errors(const std::vector<f32>& y) const {
    Errors errors;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double error = std::abs(y[i] - sums_[i]) / sizes_[i];
      if (!(error <= errors.most)) errors.most = error;  // also NaN
      errors.mean += error / static_cast<double>(y.size());
    }
    return errors;
  }

 private:
  std::size_t at(int i, int j) const { return static_cast<std::size_t>(i * of_.n + j); }
  std::vector<double> matrix() const { return std::vector<double>(static_cast<std::size_t>(of_.m * of_.n)); }
  template <class E>
  static double number(E x) {
    if constexpr (std::is_integral_v<E>)
      return x;
    else
      return double{static_cast<float>(x)};
  }
  T one(std::mt19937& random) const {
    const int r = static_cast<int>(random() >> 4 & 0xffff);
    if constexpr (std::is_integral_v<T>)
      if (of_.numbers == Numbers::all) return static_cast<T>(r);
    if (of_.numbers == Numbers::fractional) return T(static_cast<float>(r - 0x8000) * 0x1p-14f);
    const bool positive = of_.numbers == Numbers::positive || std::is_same_v<T, u8>;
    return stored<T>(positive ? r % 7 + 1 : r % 15 - 7);
  }
  std::vector<double> fill(std::vector<T>& memory, int rows, std::mt19937& random) {
    memory.assign(static_cast<std::size_t>(rows * stride_), stored<T>(100));
    std::vector<double> values;
    for (int i = 0; i < rows; ++i)
      for (int l = 0; l < of_.k; ++l) values.push_back(number(memory[x_at(i, l)] = one(random)));
    return values;
  }
  Tensor<T, 2> on_device(const std::vector<T>& values, int rows) const {
    memory_.push_back(tensor<T, 1>({static_cast<std::int64_t>(values.size())}, values));
    return {test_device(), memory_.back().data(), {rows, of_.k}, {stride_, 1}};
  }
  Argument argument(std::vector<T>& values, int rows) const {
    Argument argument = dense_argument(values, {rows, stride_});
    argument.extent[1] = of_.k;
    return argument;
  }

  Sizes of_;
  int stride_;
  std::vector<T> x_, w_;
  std::vector<double> sums_, sizes_;
  mutable std::vector<Tensor<T, 1>> memory_;
};

template <class O>
std::vector<O> nines(const Sizes& of) {
  return std::vector<O>(static_cast<std::size_t>(of.m * of.n), stored<O>(99));
}
template <class O>
Tensor<O, 2> result(const Sizes& of) {
  return tensor<O, 2>({of.m, of.n}, nines<O>(of));
}
template <class O>
std::vector<O> multiples(int count, int modulus, double step = 1) {
  std::vector<O> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<O>((i % modulus - modulus / 2) * step));
  return values;
}
std::string text(const MatmulTiles& tiles, const Sizes& of) {
  return fmt::format("tiles of [{},{}] by {}, {}x{}x{}", tiles.m, tiles.n, tiles.k, of.m, of.n, of.k);
}

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

// --- plans

TEST_CASE("matmuls of 8 bits are warp-specialized where one operand runs along k and TMA loads both", "[plan]") {
  const auto check = []<class T>(T) {
    const std::string type(name(element_type<T>));
    INFO(type);
    const auto of = [](const MatmulTiles& tiles, const Changes& change = {}) {
      return why_not(plain<T, f32>(tiles).graph(), change);
    };
    CHECK(of({128, 128, 128}) == "");
    CHECK(of({128, 128, 128}, along(0, 0)) == "");
    CHECK(of({128, 128, 128}, along(1, 0)) == "");  // swapped
    CHECK(of({128, 128, 128}, [](Variant& variant) { along(0, 0)(variant), along(1, 0)(variant); }) ==
          fmt::format("the right operand {0}; with its operands swapped, the right operand {0}",
                      "is not contiguous along k, as wgmma requires for " + type));
    const std::string by_tma = " cannot be loaded by TMA, as rows of 8-bit elements must be for wgmma";
    CHECK(of({128, 128, 128}, unaligned(0)) == "the left operand" + by_tma);
    CHECK(of({128, 128, 128}, unaligned(1)) == "the right operand" + by_tma);
    CHECK(of({128, 128, 128}, along(1, -1)) == "the right operand" + by_tma);
    CHECK(of({128, 128, 128}, unaligned(2, 4)) == "");  // threads store
    for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 64},
                                     {64, 64, 192},
                                     {64, 64, 640},
                                     {32, 64, 128},
                                     {192, 64, 128},
                                     {64, 80, 128},
                                     {64, 32, 128}})
      CHECK(of(tiles) ==
            fmt::format("no wgmma schedule for tiles of [{0},{2}] x [{2},{1}]", tiles.m, tiles.n, tiles.k));
    // Other types than fp8 are multiplied by fewer of k at a time, if all do not fit into shared memory.
    CHECK(of({128, 256, 512}) == (is_fp8(element_type<T>) ? "two stages do not fit into shared memory"
                                                          : "no wgmma schedule for tiles of [128,64] x [64,256]"));
    CHECK(of({256, 256, 128}) == "[256,256] accumulators do not fit in registers");
    CHECK(of({256, 64, 128}) == (is_fp8(element_type<T>) ? "[256,64] accumulators do not fit in registers" : ""));
  };
  check(f8e4m3()), check(f8e5m2()), check(i8()), check(u8());
}

TEST_CASE("a right operand of 8 bits may have any form", "[plan]") {
  static constexpr MatmulTiles tiles{64, 128, 128};
  using Make = std::function<Tile<f8e4m3, 2>(const In<f8e4m3, 2>& w, const Index& k, const Index& n)>;
  const auto of = [](const Make& make, const Changes& change = {}) {
    return why_not(kernel("form",
                          [=](In<f8e4m3, 2> x, In<f8e4m3, 2> w, Out<f32, 2> y) {
      auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
      Var acc = zeros<f32>({tiles.m, tiles.n});
      for (Index k : range(cdiv(x.extent(1), tiles.k))) acc = mma(left(x, m, k, tiles), make(w, k, n), acc);
      store(y, {m, n}, acc);
    }).graph(),
                   change);
  };
  const Make as_it_is = [](const auto& w, const Index& k, const Index& n) {
    return load(w, {k, n}, {tiles.k, tiles.n});
  };
  CHECK(of(as_it_is, along(1, 0)) == "");
  CHECK(of(as_it_is) == "");
  CHECK(of([](const auto& w, const Index& k, const Index& n) {
    return load(w.permute({1, 0}), {k, n}, {tiles.k, tiles.n});
  }) == "");
}

TEST_CASE("operands of 8 bits come from memory as they are", "[plan]") {
  const auto of = [](const auto& make) {
    return why_not(kernel("operands", [=](In<f8e4m3, 2> x, In<f8e4m3, 2> w, In<bf16, 2> v, Out<f32, 2> y) {
      auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
      constexpr MatmulTiles tiles{64, 64, 128};
      Var acc = zeros<f32>({64, 64});
      for (Index k : range(cdiv(x.extent(1), 128))) {
        const Tile a = left(x, m, k, tiles), b = right(w, n, k, tiles);
        const Tile c = load(v, {m, k}, {64, 128}), d = transpose(load(v, {n, k}, {64, 128}));
        const auto [of_a, of_b] = make(a, b, c, d);
        acc = mma(of_a, of_b, acc);
      }
      store(y, {m, n}, acc);
    }).graph());
  };
  using B = Tile<f8e4m3, 2>;
  const auto twice = [](const B& x) { return B(cast<f8e4m3>(cast<f32>(x) * 2.0f)); };
  const auto narrow = [](const auto& x) { return B(cast<f8e4m3>(x)); };
  CHECK(of([](const auto& a, const auto& b, const auto&, const auto&) { return std::pair<B, B>(a, b); }) == "");
  CHECK(of([=](const auto& a, const auto& b, const auto&, const auto&) { return std::pair<B, B>(twice(a), b); }) ==
        "the left operand is computed as f8e4m3");
  CHECK(of([=](const auto& a, const auto& b, const auto&, const auto&) { return std::pair<B, B>(a, twice(b)); }) ==
        "the right operand comes from 'mul'; with its operands swapped, the left operand is computed as f8e4m3");
  CHECK(of([=](const auto&, const auto& b, const auto& c, const auto&) { return std::pair<B, B>(narrow(c), b); }) ==
        "the left operand is computed as f8e4m3");
  CHECK(of([=](const auto& a, const auto&, const auto&, const auto& d) { return std::pair<B, B>(a, narrow(d)); }) ==
        "the right operand is bf16 in memory; with its operands swapped, the left operand is computed as f8e4m3");
}

namespace {

/// Steps of a plan's matmuls.
struct Promotion {
  MatmulTiles tiles;
  std::vector<int> columns;  ///< of the parts of a stage
  int stages;
};
/// Registers of a left operand, or of the sets of sums, which begin with zeros.
int registers_of(const Plan& plan, bool sums) {
  int registers = 0;
  for (const StepPlace& place : places_of<DeclareAccumulator>(const_cast<Plan&>(plan)))
    if (const auto& declared = place.step().action.get<DeclareAccumulator>(); declared.zeroed == sums)
      registers += plan.storage(declared.value).registers / plan.storage(declared.value).packed;
  return registers;
}
const std::string promoted = ", sums of 128 products promoted to f32";

}  // namespace

TEST_CASE("sums of fp8 are promoted in parts, from two sets of registers", "[plan]") {
  for (const Promotion& of : {Promotion{{64, 64, 128}, {32, 32}, 12},
                              {{64, 64, 256}, {64}, 6},
                              {{64, 64, 384}, {32, 32}, 4},
                              {{64, 64, 512}, {64}, 3},
                              {{64, 96, 128}, {48, 48}, 9},
                              {{64, 128, 128}, {64, 64}, 8},
                              {{64, 128, 256}, {64, 64}, 4},
                              {{64, 192, 128}, {96, 96}, 6},
                              {{64, 192, 256}, {96, 96}, 3},
                              {{64, 256, 128}, {64, 64, 64, 64}, 4},
                              {{128, 64, 128}, {32, 32}, 8},
                              {{128, 128, 128}, {64, 64}, 6},
                              {{128, 128, 256}, {64, 64}, 3},
                              {{128, 192, 128}, {96, 96}, 4},
                              {{128, 256, 128}, {64, 64, 64, 64}, 4}}) {
    const Plan plan = plan_with(plain<f8e4m3, f32>(of.tiles).graph());
    INFO(text(of.tiles, {}) << '\n' << tree_text(plan));
    REQUIRE(has_roles(plan));
    const Role& consumer = plan.phases[0].roles[1];
    CHECK(consumer.warps == of.tiles.m / 16);  // a warp group has 64 rows
    CHECK(consumer.consumer_groups == (of.tiles.m == 64 ? 2 : 1));
    CHECK(plan.pipelines[PipelineId{0}].stages == of.stages);
    CHECK(plan.shared_bytes <= plan.target.shared_bytes);
    const int parts = static_cast<int>(of.columns.size()) * of.tiles.k / 128;
    CHECK(count<Wgmma>(plan) == parts);
    CHECK(count<PromoteSums>(plan) == parts + 1);  // the last stage's last part, after the loop
    CHECK(count<DeclareAccumulator>(plan) == 3);
    CHECK(registers_of(plan, true) == of.columns[0]);
    CHECK(registers_of(plan, false) == 16);  // 64 rows by 128 of k
    CHECK(count<LoadFragment>(plan) == of.tiles.k / 128);
    std::vector<int> columns;
    for (const StepPlace& place : places_of<Wgmma>(const_cast<Plan&>(plan))) {
      const Wgmma& wgmma = place.step().action.get<Wgmma>();
      CHECK((wgmma.m == of.tiles.m && wgmma.k == 128 && wgmma.overwrites && !wgmma.overwrites_first && wgmma.left));
      columns.push_back(wgmma.n);
    }
    std::vector<int> expected;
    for (int k = 0; k < of.tiles.k; k += 128) expected.insert(expected.end(), of.columns.begin(), of.columns.end());
    CHECK(columns == expected);
    const int groups = of.tiles.m / 64;
    CHECK(notes(plan)[0] ==
          fmt::format("warp-specialized: {}x{}x{} f8e4m3 by wgmma, {} of {}, {} stages{}{}, 1 store by TMA", of.tiles.m,
                      of.tiles.n, of.tiles.k, groups == 1 ? "2 consumer groups" : "1 consumer group",
                      groups == 1 ? "1 warp group" : "2 warp groups", of.stages, promoted,
                      ", left operands from registers"));
    CHECK(plan.waits_for_previous());
  }
}

TEST_CASE("the text of a plan shows how sums are promoted", "[plan]") {
  const auto has = [](const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; };
  const Plan wide = plan_with(plain<f8e5m2, f32>({128, 256, 128}).graph());
  const std::string steps = tree_text(wide);
  INFO(steps);
  CHECK(has(steps, "[128,128] x [128,64] f8e5m2, wgmma"));
  for (const char* part :
       {", columns from 64", ", columns from 128", ", columns from 192", "declare accumulator mma_20_part1 = 0"})
    CHECK(has(steps, part));
  CHECK(has(tree_text(plan_with(plain<f8e5m2, f32>({64, 64, 512}).graph())), ", k from 384"));
  const auto remark = [](const Plan& plan) {
    std::vector<std::string> found;
    for (const Remark& one : plan.remarks)
      if (one.kind == remark_kind::wgmma && one.message.find(" x [") != std::string::npos) found.push_back(one.message);
    return fmt::format("{}", fmt::join(found, "; "));
  };
  const std::string from_registers = ", the left operand from registers";
  CHECK(remark(wide) == "[128,128] x [128,256] of f8e5m2" + from_registers + promoted);
  CHECK(remark(plan_with(plain<f8e4m3, f32>({64, 64, 512}).graph())) ==
        "[64,512] x [512,64] of f8e4m3" + from_registers + promoted);
  CHECK(remark(plan_with(plain<i8, i32>({64, 64, 512}).graph())) == "[64,512] x [512,64] of i8");
  CHECK(notes(plan_with(gated<f8e4m3>({64, 128, 128}).graph()))[0].find(
            "64x128x128 f8e4m3 by wgmma, 2 matmuls, 2 consumer groups of 1 warp group") != std::string::npos);
}

TEST_CASE("integers of 8 bits are summed by wgmma itself", "[plan]") {
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 128}, {128, 128, 128}, {128, 256, 128}, {256, 128, 128}}) {
    const Plan plan = plan_with(plain<i8, i32>(tiles).graph());
    INFO(tree_text(plan));
    REQUIRE(has_roles(plan));
    CHECK(count<PromoteSums>(plan) == 0);
    CHECK(count<Wgmma>(plan) == 1);
    Plan changed = plan;
    CHECK((the<Wgmma>(changed).k == 128 && the<Wgmma>(changed).overwrites_first));
    CHECK(notes(plan)[0].find("promoted") == std::string::npos);
    CHECK(count<TmaStore>(plan) == tiles.n / 32);
  }
}

TEST_CASE("two fp8 matmuls of a loop share the sets of registers", "[plan]") {
  const Plan plan = plan_with(gated<f8e4m3>({64, 128, 128}).graph());
  INFO(tree_text(plan));
  REQUIRE(has_roles(plan));
  CHECK(count<Wgmma>(plan) == 4);
  CHECK(count<PromoteSums>(plan) == 5);
  CHECK(count<DeclareAccumulator>(plan) == 3);
  CHECK(registers_of(plan, true) == 64);
  CHECK(registers_of(plan, false) == 16);  // both read one left operand
  // With parts of all columns, a thread has no registers for both.
  CHECK(has_roles(plan_with(gated<f8e4m3>({64, 128, 256}).graph())));
  // Both may have the same operands.
  const auto twice = kernel("twice", [](In<f8e4m3, 2> x, In<f8e4m3, 2> w, In<f32, 2> r, Out<f32, 2> y, Out<f32, 2> z) {
    Var sum = zeros<f32>({64, 64}), more = load(r, {0, 0}, {64, 64});
    for (Index k : range(cdiv(x.extent(1), 128))) {
      const Tile a = load(x, {0, k}, {64, 128}), b = transpose(load(w, {0, k}, {64, 128}));
      sum = mma(a, b, sum);
      more = mma(a, b, more);
    }
    store(y, {0, 0}, sum);
    store(z, {0, 0}, more);
  });
  const Plan of_twice = plan_with(twice.graph());
  CHECK(has_roles(of_twice));
  CHECK(violations(of_twice).empty());
}

TEST_CASE("fp8 may be split along k, integers may not", "[plan]") {
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 128}, {128, 128, 128}}) {
    const Graph graph = plain<f8e4m3, f32>(tiles).graph();
    const Plan clusters = plan_with(graph, split(SplitK::cluster)), all = plan_with(graph, split(SplitK::stream_k));
    CHECK(clusters.phases[0].schedule.split_k == SplitK::cluster);
    CHECK(all.shared_by_grid());
    CHECK(notes(clusters)[0].find(promoted + ", split-K in clusters") != std::string::npos);
    CHECK(notes(all)[0].find(promoted + ", stream-K") != std::string::npos);
    for (const Plan& plan : {clusters, all}) CHECK(count<PromoteSums>(plan) == count<Wgmma>(plan) + 1);
  }
  CHECK(plan_with(plain<f8e4m3, f32>({128, 256, 128}).graph(), split(SplitK::stream_k)).shared_by_grid());
  CHECK(plan_with(plain<f8e4m3, f32>({128, 256, 128}).graph(), [](Variant& v) { v.multicast = true; })
            .phases[0]
            .schedule.multicast == 2);
  for (const SplitK how : {SplitK::cluster, SplitK::stream_k}) {
    const Plan plan = plan_with(plain<i8, i32>({64, 64, 128}).graph(), split(how));
    CHECK(why_not(plan) == "");
    CHECK(plan.phases[0].schedule.split_k == SplitK::none);
    CHECK(std::ranges::any_of(plan.remarks, [](const Remark& remark) {
      return remark.message.find("the accumulators are not f32") != std::string::npos;
    }));
  }
  const auto k_iterations = [](const Graph& graph) {
    const Argument x{.extent = {100, 1300}, .stride = {1300, 1}};
    return SplitKLoop(run_passes(graph)).of(std::vector<Argument>(3, x));
  };
  CHECK(k_iterations(plain<f8e4m3, f32>({64, 64, 128}).graph()) == 11);
  CHECK(k_iterations(plain<i8, i32>({64, 64, 128}).graph()) == 0);
}

TEST_CASE("fp8 that wgmma does not take is multiplied as f16", "[plan]") {
  const auto check = [](const Plan& plan) {
    INFO(tree_text(plan));
    CHECK_FALSE(has_roles(plan));
    CHECK(count<Wgmma>(plan) == 0);
    REQUIRE(count<Mma>(plan) == 1);
    Plan changed = plan;
    CHECK(the<Mma>(changed).matmul.kind == MatmulKind::mma_sync);
    CHECK(the<Mma>(changed).matmul.type == ElementType::f16);
  };
  const Graph graph = plain<f8e4m3, f32>({64, 64, 128}).graph();
  for (const char* arch : {"sm_80", "sm_89", "sm_90", "sm_100", "sm_120"})
    check(plan_with(graph, {}, Arch::parse(arch)));
  const Graph passed = run_passes(graph);
  check(make_plan(passed, dense_variant(passed), Arch::sm_90a, {.verify = true, .warp_specialize = false}));
  CHECK(has_roles(make_plan(passed, dense_variant(passed), Arch::sm_90a, {.debug = true, .verify = true})));
  check(plan_with(graph, unaligned(0)));
  check(plan_with(plain<f8e5m2, bf16>({128, 128, 64}).graph()));
}

TEST_CASE("the search for a schedule names the rejected ones of fp8, too", "[plan]") {
  // The accumulators and the sums have 192 + 96 registers.
  const Plan plan = plan_with(gated<f8e4m3>({64, 192, 128}).graph());
  INFO(fmt::format("{}", fmt::join(plan.search, "\n")));
  REQUIRE(plan.search.size() >= 2);
  CHECK(plan.search.front().starts_with("rejected gemm, 1 of 1: 64x192x128 f8e4m3 by wgmma, 2 matmuls"));
  CHECK(plan.search.back().starts_with("schedule cta_matmul"));
  CHECK(why_not(plan).find("registers") != std::string::npos);
}

// --- planted faults

namespace {

/// The steps around the nth wgmma, from its fence to the fence of its sums.
void drop_part(Plan& plan, std::size_t nth) {
  const StepPlace place = place_of<Wgmma>(plan, nth);
  place.body->erase(place.body->begin() + static_cast<std::ptrdiff_t>(place.index) - 1,
                    place.body->begin() + static_cast<std::ptrdiff_t>(place.index) + 3);
}
template <class Kind>
void repeat(Plan& plan, std::size_t nth) {
  const StepPlace place = place_of<Kind>(plan, nth);
  place.body->insert(place.body->begin() + static_cast<std::ptrdiff_t>(place.index), Step(place.step()));
}
/// In a stage, the step that releases the one before.
StepPlace release_of(Plan& plan, std::size_t nth) {
  std::vector<StepPlace> found;
  for (const StepPlace& place : places_of<ElectOne>(plan)) {
    const Body& body = place.step().action.get<ElectOne>().body;
    if (std::ranges::any_of(body, [](const Step& step) { return step.action.is<ArriveEmpty>(); }))
      found.push_back(place);
  }
  return found.at(nth);
}
PromoteSums& promotion(Plan& plan, std::size_t nth) { return the<PromoteSums>(plan, nth); }

}  // namespace

// In the loop, the stage before's last part is promoted first, then each part but the last.
TEST_CASE("the verifier reports errors of promoted sums", "[plan]") {
  const PlantedFault faults[] =
      {
          {"sums are not promoted", [](Plan& p) { place_of<PromoteSums>(p, 1).drop(); },
           "it overwrites sums that are not promoted"},
          {"the sums of the stage before are not promoted", [](Plan& p) { place_of<PromoteSums>(p, 0).drop(); },
           "it overwrites sums that are not promoted"},
          {"the last sums are not promoted", [](Plan& p) { place_of<PromoteSums>(p, 4).drop(); },
           "sums of fp8 products are not promoted"},
          {"sums are promoted twice", [](Plan& p) { repeat<PromoteSums>(p, 1); }, "are promoted already"},
          {"the last sums are promoted twice", [](Plan& p) { repeat<PromoteSums>(p, 4); }, "are promoted already"},
          {"sums are promoted before the wait for them", [](Plan& p) { place_of<PromoteSums>(p, 1).move(-2); },
           "is the accumulator of a wgmma in flight"},
          {"the last sums are promoted before the wait for them",
           [](Plan& p) {
    const StepPlace last = place_of<PromoteSums>(p, 4), wait = place_of<WgmmaWait>(p, 4);
    REQUIRE(last.body == wait.body);
    last.move(static_cast<std::ptrdiff_t>(wait.index) - static_cast<std::ptrdiff_t>(last.index));
           },
           "is the accumulator of a wgmma in flight"},
          {"sums are promoted after they are overwritten",
           [](Plan& p) {
    const StepPlace first = place_of<PromoteSums>(p, 1), next = place_of<Wgmma>(p, 2);
    first.move(static_cast<std::ptrdiff_t>(next.index) - static_cast<std::ptrdiff_t>(first.index));
           },
           "it overwrites sums that are not promoted"},
                     {"sums are promoted to other columns",
                      [](Plan& p) { promotion(p, 1).sums = promotion(p, 3).sums; }, "are sums of other columns"},
                     {"sums are promoted to more columns than there are",
                      [](Plan& p) { p.values[promotion(p, 3).sums].origin[1] = 224; }, "are not columns of"},
                     {"sums are promoted to sums", [](Plan& p) { promotion(p, 2).accumulators = promotion(p, 1).sums; },
                      "are not columns of"},
                     {"sums are added up by wgmma", [](Plan& p) { the<Wgmma>(p, 1).overwrites = false; },
                      "it adds up more than 128 products of fp8"},
                     {"wgmma adds to the sums of the stage before",
                      [](Plan& p) {
    the<Wgmma>(p, 1).overwrites = false;
    the<Wgmma>(p, 1).overwrites_first = the<Loop>(p, 2).loop;
                      },
                      "it adds up more than 128 products of fp8"},
      {"the last columns are left out", [](Plan& p) { drop_part(p, 3); }, "only 192 of 256 columns are multiplied"},
      {"columns in between are left out", [](Plan& p) { drop_part(p, 1); },
       "only 128 of 128 along k, and columns up to 64, are multiplied"},
      {"a part is multiplied twice", [](Plan& p) { repeat<Wgmma>(p, 2); },
       "k is multiplied from 0 on, but so far only up to 128"},
      {"columns that overlap", [](Plan& p) { p.values[the<Wgmma>(p, 2).out].origin[1] = 120; }, "and columns up to"},
      {"columns within the rows of a swizzle", [](Plan& p) { p.values[the<Wgmma>(p, 1).out].origin[1] = 60; },
       "but the operand is 64 by k from 0 to 128"},
      {"columns past the end", [](Plan& p) { p.values[the<Wgmma>(p, 3).out].origin[1] = 200; },
       "but the operand is 64 by k from 0 to 128"},
      {"a wait that leaves two groups", [](Plan& p) { the<WgmmaWait>(p, 1).pending = 2; },
       "is the accumulator of a wgmma in flight"},
      {"no wait for sums", [](Plan& p) { place_of<WgmmaWait>(p, 2).drop(); },
       "is the accumulator of a wgmma in flight"},
      {"no wait for the sums of the stage before", [](Plan& p) { place_of<WgmmaWait>(p, 0).drop(); },
       "is the accumulator of a wgmma in flight"},
      {"a stage is released before the wait",
       [](Plan& p) {
    const StepPlace released = release_of(p, 0), wait = place_of<WgmmaWait>(p, 0);
    REQUIRE(released.body == wait.body);
    released.move(static_cast<std::ptrdiff_t>(wait.index) - static_cast<std::ptrdiff_t>(released.index));
       },
       "wgmma that read the stage are in flight"},
      {"the last stage is released before the wait", [](Plan& p) { release_of(p, 1).move(-2); },
       "wgmma that read the stage are in flight"},
      {"the stage that is being read is released",
       [](Plan& p) { release_of(p, 0).step().action.get<ElectOne>().body[0].action.get<ArriveEmpty>().behind = 0; },
       "wgmma that read the stage are in flight"},
      {"all parts have one set of registers",
       [](Plan& p) {
    const StorageId one = p.values[the<Wgmma>(p, 0).out].storage, other = p.values[the<Wgmma>(p, 1).out].storage;
    for (Value& value : p.values)
      if (value.storage == other) value.storage = one;
       },
       "is the accumulator of a wgmma in flight"},
      {"a set of registers that is not zero at first", [](Plan& p) { the<DeclareAccumulator>(p, 2).zeroed = false; },
       "is read before it is set"},
      {"a set of registers that is not declared", [](Plan& p) { place_of<DeclareAccumulator>(p, 2).drop(); },
       "before it is defined"},
      {"no fence before wgmma", [](Plan& p) { place_of<WgmmaFence>(p, 0).drop(); }, "no fence precedes it"},
      {"a wgmma that is not committed", [](Plan& p) { place_of<WgmmaCommit>(p, 1).drop(); }, "are not committed"},
      {"operands of another type", [](Plan& p) { the<Wgmma>(p, 0).type = ElementType::f8e5m2; },
       "is not stored as wgmma reads f8e5m2"},
      {"a left operand that is not read", [](Plan& p) { place_of<LoadFragment>(p, 0).drop(); },
       "is read before it is set"},
      {"a left operand that is read before the wait",
       [](Plan& p) {
    const StepPlace read = place_of<LoadFragment>(p, 0), wait = place_of<WgmmaWait>(p, 0);
    REQUIRE(read.body == wait.body);
    read.move(static_cast<std::ptrdiff_t>(wait.index) - static_cast<std::ptrdiff_t>(read.index));
       },
       "is the left operand of a wgmma in flight"},
      {"a right operand along n", [](Plan& p) { the<Wgmma>(p, 1).b_k_major = false; },
       "wgmma reads f8e4m3 only k-major"},
      {"a k that is no multiple of 32", [](Plan& p) { the<Wgmma>(p, 0).k = 48; }, "no wgmma instruction has shape"},
      {"half of k", [](Plan& p) { the<Wgmma>(p, 0).k = 64; }, "only 64 of 128 along k"},
      };
  check_reported(plan_with(plain<f8e4m3, f32>({128, 256, 128}).graph()), faults);

  const PlantedFault of_k[] = {
      {"more than 128 of k", [](Plan& p) { the<Wgmma>(p, 0).k = 256; }, "it adds up more than 128 products of fp8"},
      {"the last part of k is left out", [](Plan& p) { drop_part(p, 3); }, "only 384 of 512 along k"},
      {"k in between is left out", [](Plan& p) { drop_part(p, 1); },
       "k is multiplied from 256 on, but so far only up to 128"},
      {"a part of k is multiplied twice", [](Plan& p) { the<Wgmma>(p, 1).first_k = 0; },
       "k is multiplied from 0 on, but so far only up to 128"},
      {"k past the end", [](Plan& p) { the<Wgmma>(p, 3).first_k = 448; }, "but the operand is 64 by k from 448 to 576"},
  };
  check_reported(plan_with(plain<f8e4m3, f32>({64, 64, 512}).graph()), of_k);
}

TEST_CASE("the verifier reports sums that are promoted too late, or to another matmul", "[plan]") {
  const PlantedFault late[] = {
      {"the last sums are promoted at the end",
       [](Plan& p) {
    const StepPlace last = place_of<PromoteSums>(p, 2);
    last.move(std::ssize(*last.body) - 1 - static_cast<std::ptrdiff_t>(last.index));
  }, "is used before all sums are promoted to it"},
  };
  for (const SplitK how : {SplitK::none, SplitK::cluster, SplitK::stream_k})
    check_reported(plan_with(plain<f8e4m3, f32>({64, 64, 128}).graph(), split(how)), late);
  const PlantedFault other[] = {
      {"sums of one matmul are promoted to the other",
       [](Plan& p) { std::swap(promotion(p, 2).accumulators, promotion(p, 3).accumulators); },
       "are sums of another matmul"},
      {"all sums are promoted to one matmul",
       [](Plan& p) {
    for (const std::size_t i : {0, 3, 4}) promotion(p, i).accumulators = promotion(p, 1).accumulators;
  }, "are sums of another matmul"},
  };
  check_reported(plan_with(gated<f8e4m3>({64, 128, 128}).graph()), other);
}

TEST_CASE("the verifier reports errors of integers of 8 bits", "[plan]") {
  const PlantedFault faults[] = {
      {"a left operand along m", [](Plan& p) { the<Wgmma>(p).a_k_major = false; }, "wgmma reads i8 only k-major"},
      {"a right operand along n", [](Plan& p) { the<Wgmma>(p).b_k_major = false; }, "wgmma reads i8 only k-major"},
      {"a k that is no multiple of 32", [](Plan& p) { the<Wgmma>(p).k = 48; }, "no wgmma instruction has shape"},
      {"half of k", [](Plan& p) { the<Wgmma>(p).k = 64; }, "along k are multiplied"},
      {"operands without sign", [](Plan& p) { the<Wgmma>(p).type = ElementType::u8; },
       "is not stored as wgmma reads u8"},
      {"some columns only", [](Plan& p) { the<Wgmma>(p).n = 64; }, "but the operand is 64 by k from 0 to 128"},
      {"sums that are not waited for", [](Plan& p) { place_of<WgmmaWait>(p, 1).drop(); }, "in flight"},
      {"no fence before wgmma", [](Plan& p) { place_of<WgmmaFence>(p, 0).drop(); }, "no fence precedes it"},
  };
  check_reported(plan_with(plain<i8, i32>({128, 128, 128}).graph()), faults);
}

TEST_CASE("warp-specialized matmuls of 8 bits compile without spills", "[generate]") {
  std::vector<KernelSource> sources;
  const auto add = [&](const Graph& graph, const Changes& change = {}) {
    const Plan plan = plan_with(graph, change);
    CHECK(why_not(plan) == "");
    sources.push_back(kernel_source(plan));
  };
  const Changes multicast = [](Variant& variant) { variant.multicast = true; };
  for (const MatmulTiles& tiles : wgmma_tiles(ElementType::f8e4m3)) {
    if (tiles.m > 128) continue;
    INFO(text(tiles, {}));
    add(plain<f8e4m3, f32>(tiles).graph());
    add(plain<f8e5m2, bf16>(tiles).graph(), split(SplitK::stream_k));
    add(plain<f8e4m3, bf16>(tiles).graph(), split(SplitK::cluster));
    add(plain<f8e4m3, f32>(tiles).graph(), multicast);
    if (tiles.n < 256) add(plain<f8e5m2, f32>(tiles).graph(), unaligned(2, 4));
    add(scaled<f8e4m3, bf16>(tiles).graph());
    add(scaled<f8e4m3, f32>(tiles).graph(), split(SplitK::stream_k));
    add(scaled<f8e5m2, bf16>(tiles).graph(), split(SplitK::cluster));
    add(biased<f8e4m3>(tiles).graph());
  }
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 384}, {64, 64, 512}, {64, 96, 128}, {64, 192, 256}})
    add(plain<f8e4m3, f32>(tiles).graph());
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 128}, {64, 128, 128}, {64, 96, 256}})
    add(gated<f8e4m3>(tiles).graph());
  for (const MatmulTiles& tiles : wgmma_tiles(ElementType::i8)) {
    INFO(text(tiles, {}));
    add(plain<i8, i32>(tiles).graph());
    add(plain<u8, f32>(tiles).graph(), multicast);
    add(scaled<i8, bf16>(tiles).graph());
    add(biased<i8>(tiles).graph());
  }
  add(gated<i8>({64, 128, 128}).graph());
  check_compiled(sources);
}

#ifdef TESSERA_HAS_EMULATOR
namespace {

/// Launches whose kernels are compiled together.
class Emulations {
 public:
  using Check = std::function<void()>;

  /// `problem` and what `arguments` refer to must stay as they are until run().
  void add(const Graph& traced, const std::vector<Argument>& arguments, const MatmulTiles& tiles, const Sizes& of,
           Check check, const RunOptions& options = {}, const Changes& change = {}) {
    Launch launch{run_passes(traced), arguments, {}, options, std::move(check), 0, text(tiles, of)};
    launch.grid = {(of.m + tiles.m - 1) / tiles.m, (of.n + tiles.n - 1) / tiles.n};
    Variant variant = classify(launch.graph, arguments);
    if (change) change(variant);
    add(std::move(launch), generate(launch.graph, variant, Arch::sm_90a));
  }
  /// y = x w; `wrong`: the result is wrong.
  template <class T, class O>
  void product(const MatmulTiles& tiles, const Sizes& of, const RunOptions& options = {}, const Changes& change = {}) {
    const auto problem = std::make_shared<Problem<T>>(of);
    const auto y = std::make_shared<std::vector<O>>(nines<O>(of));
    add(plain<T, O>(tiles).graph(), {problem->x_argument(), problem->w_argument(), dense_argument(*y, {of.m, of.n})},
        tiles, of, [=] { CHECK(problem->difference(*y) == ""); }, options, change);
  }
  void run() {
    const Emulator emulator = Emulator::compile(sources_);
    for (const Launch& launch : launches_) {
      INFO(launch.name << " of " << sources_[launch.kernel].author);
      for (const std::uint64_t seed : {launch.options.seed, launch.options.seed + 100}) {  // two orders
        RunOptions options = launch.options;
        options.seed = seed;
        CHECK(emulator.run(launch.kernel, launch.graph, launch.arguments, launch.grid, options).text() == "");
        launch.check();
      }
    }
    launches_.clear();
  }
  std::size_t kernels() const { return sources_.size(); }

 private:
  struct Launch {
    Graph graph;
    std::vector<Argument> arguments;
    std::vector<std::int64_t> grid;
    RunOptions options;
    Check check;
    std::size_t kernel;
    std::string name;
  };
  void add(Launch launch, KernelSource source) {
    CHECK(source.plan.find("not warp-specialized") == std::string::npos);
    const auto found = std::ranges::find(sources_, source.text, &KernelSource::text);
    launch.kernel = static_cast<std::size_t>(found - sources_.begin());
    launch.options.seed = launches_.size() + 1;
    if (found == sources_.end()) sources_.push_back(std::move(source));
    launches_.push_back(std::move(launch));
  }

  std::vector<KernelSource> sources_;
  std::vector<Launch> launches_;
};

constexpr RunOptions one_block{.persistent_blocks = 1};

}  // namespace

TEST_CASE("generated kernels sum products of fp8 exactly", "[emulator]") {
  Emulations all;
  // Each kernel also has more grid tiles than CTAs, and one to more k-iterations than stages. Extents along k have one
  // alignment, so that a kernel serves all of them.
  all.product<f8e4m3, f32>({64, 64, 128}, {200, 136, 300});
  all.product<f8e4m3, f32>({64, 64, 128}, {1, 72, 108});
  all.product<f8e4m3, f32>({64, 64, 128}, {129, 68, 128 * 14 + 12, Numbers::positive}, one_block);
  all.product<f8e5m2, bf16>({128, 128, 128}, {200, 136, 300});
  all.product<f8e5m2, bf16>({128, 128, 128}, {264, 264, 124}, one_block);
  all.product<f8e5m2, bf16>({128, 128, 128}, {136, 40, 128 * 9 - 4, Numbers::positive});
  all.product<f8e4m3, f32>({128, 256, 128}, {200, 264, 300, Numbers::positive}, one_block);
  all.product<f8e4m3, f32>({128, 256, 128}, {40, 200, 128 * 6 + 12, Numbers::positive});
  all.product<f8e4m3, f32>({128, 192, 128}, {136, 264, 700, Numbers::positive});
  all.product<f8e5m2, f32>({64, 128, 256}, {136, 200, 604, Numbers::positive});
  all.product<f8e5m2, f32>({64, 128, 256}, {64, 128, 252});
  all.product<f8e4m3, bf16>({128, 128, 256}, {136, 200, 1212, Numbers::positive});
  all.product<f8e4m3, f32>({64, 64, 512}, {72, 136, 604, Numbers::positive});
  all.product<f8e4m3, f32>({64, 64, 512}, {64, 64, 2108}, one_block);
  all.product<f8e4m3, f32>({64, 96, 128}, {72, 104, 412, Numbers::positive});
  all.product<f8e5m2, f32>({128, 192, 256}, {136, 200, 1212, Numbers::positive});  // two stages
  CHECK(all.kernels() == 9);
  all.run();
}

TEST_CASE("generated kernels sum products of integers of 8 bits", "[emulator]") {
  Emulations all;
  all.product<i8, i32>({128, 128, 128}, {200, 136, 300, Numbers::all});
  all.product<i8, i32>({128, 128, 128}, {136, 264, 128 * 8 - 4, Numbers::all}, one_block);
  all.product<i8, i32>({256, 128, 128}, {264, 136, 400, Numbers::all});
  all.product<u8, i32>({64, 256, 256}, {72, 264, 300, Numbers::all});
  all.product<u8, f32>({128, 192, 128}, {40, 200, 500, Numbers::all});
  CHECK(all.kernels() == 4);

  const Sizes of{200, 136, 300, Numbers::all};
  constexpr MatmulTiles tiles{128, 128, 128};
  Problem<i8> problem(of);
  std::vector<i32> bias, y = nines<i32>(of);
  for (int j = 0; j < of.n; ++j)
    bias.push_back(j % 2 ? std::numeric_limits<i32>::max() - j : std::numeric_limits<i32>::min() + j);
  all.add(biased<i8>(tiles).graph(),
          {problem.x_argument(), problem.w_argument(), dense_argument(bias, {of.n}), dense_argument(y, {of.m, of.n})},
          tiles, of, [&] {
    int wrapped = 0;
    CHECK(problem.difference(y, [&](int, int j, double sum) {
      const std::int64_t exact = static_cast<std::int64_t>(sum) + bias[static_cast<std::size_t>(j)];
      wrapped += exact != static_cast<i32>(static_cast<std::uint32_t>(exact));
      return static_cast<double>(static_cast<i32>(static_cast<std::uint32_t>(exact)));
    }) == "");
    CHECK(wrapped > of.m * of.n / 4);
  });
  std::vector<f32> rows = multiples<f32>(of.m, 5, 0.25), columns = multiples<f32>(of.n, 9, 2);
  std::vector<bf16> scales = nines<bf16>(of);
  all.add(scaled<i8, bf16>(tiles).graph(),
          {problem.x_argument(), problem.w_argument(), dense_argument(rows, {of.m, 1}), dense_argument(columns, {of.n}),
           dense_argument(scales, {of.m, of.n})},
          tiles, of, [&] {
    CHECK(problem.difference(scales, [&](int i, int j, double sum) {
      return sum * rows[static_cast<std::size_t>(i)] * columns[static_cast<std::size_t>(j)];
    }) == "");
  });
  all.run();
}

TEST_CASE("generated kernels promote sums of fp8 beside scales, a bias and another matmul", "[emulator]") {
  Emulations all;
  const Sizes of{200, 136, 300, Numbers::positive};
  Problem<f8e4m3> problem(of), other({of.m, of.n, of.k, Numbers::small, -1, 1});
  other.x_values() = problem.x_values();
  std::vector<f32> rows = multiples<f32>(of.m, 5, 0.25), columns = multiples<f32>(of.n, 9, 2),
                   bias = multiples<f32>(of.n, 17, 100);
  std::vector<bf16> of_scaled = nines<bf16>(of);
  std::vector<f32> of_biased = nines<f32>(of), gate = nines<f32>(of), up = nines<f32>(of), alone = nines<f32>(of);
  const auto arguments = [&](std::initializer_list<Argument> others) {
    std::vector<Argument> all{problem.x_argument(), problem.w_argument()};
    all.insert(all.end(), others);
    return all;
  };
  for (const MatmulTiles& tiles : {MatmulTiles{128, 128, 128}, {64, 256, 128}})
    all.add(scaled<f8e4m3, bf16>(tiles).graph(),
            arguments({dense_argument(rows, {of.m, 1}), dense_argument(columns, {of.n}),
                       dense_argument(of_scaled, {of.m, of.n})}),
            tiles, of, [&] {
      CHECK(problem.difference(of_scaled, [&](int i, int j, double sum) {
        return sum * rows[static_cast<std::size_t>(i)] * columns[static_cast<std::size_t>(j)];
      }) == "");
      std::ranges::fill(of_scaled, bf16(99.0f));
    });
  const MatmulTiles tiles{64, 128, 128};
  all.add(biased<f8e4m3>(tiles).graph(),
          arguments({dense_argument(bias, {of.n}), dense_argument(of_biased, {of.m, of.n})}), tiles, of, [&] {
    CHECK(problem.difference(of_biased,
                             [&](int, int j, double sum) { return sum + bias[static_cast<std::size_t>(j)]; }) == "");
  });
  all.add(plain<f8e4m3, f32>(tiles).graph(),
          {other.x_argument(), other.w_argument(), dense_argument(alone, {of.m, of.n})}, tiles, of, [] {});
  all.add(gated<f8e4m3>(tiles).graph(),
          arguments({other.w_argument(), dense_argument(gate, {of.m, of.n}), dense_argument(up, {of.m, of.n})}), tiles,
          of, [&] {
    CHECK(problem.difference(gate) == "");
    CHECK(up == alone);
  });
  all.run();
}

TEST_CASE("CTAs that share the k-iterations of fp8, or right operands, sum exactly", "[emulator]") {
  Emulations all;
  const RunOptions cluster{.blocks_in_flight = 2, .persistent_blocks = 2, .cluster = 3},
      stream_k{.blocks_in_flight = 2, .persistent_blocks = 5}, pairs{.persistent_blocks = 2};
  all.product<f8e4m3, f32>({64, 64, 128}, {72, 136, 1100, Numbers::positive}, cluster, split(SplitK::cluster));
  all.product<f8e5m2, f32>({128, 128, 128}, {136, 72, 800, Numbers::positive}, cluster, split(SplitK::cluster));
  all.product<f8e4m3, f32>({64, 64, 128}, {72, 136, 1100, Numbers::positive}, stream_k, split(SplitK::stream_k));
  all.product<f8e4m3, bf16>({128, 256, 128}, {136, 264, 700, Numbers::positive}, stream_k, split(SplitK::stream_k));
  all.product<f8e4m3, f32>({128, 128, 128}, {300, 136, 300, Numbers::positive}, pairs,
                           [](Variant& variant) { variant.multicast = true; });
  all.run();
}

TEST_CASE("errors of promoted sums of fp8 are small", "[emulator]") {
  Emulations all;
  const auto add = [&]<class T>(T, const MatmulTiles& tiles) {
    const Sizes of{136, 136, 1100, Numbers::fractional};
    const auto problem = std::make_shared<Problem<T>>(of);
    const auto y = std::make_shared<std::vector<f32>>(nines<f32>(of));
    all.add(plain<T, f32>(tiles).graph(),
            {problem->x_argument(), problem->w_argument(), dense_argument(*y, {of.m, of.n})}, tiles, of, [=] {
      const auto [most, mean] = problem->errors(*y);
      CHECK(most < 0x1p-6);
      CHECK(mean < 0x1p-9);
      CHECK(mean > 0);  // wgmma keeps 14 bits
    });
  };
  add(f8e4m3(), {128, 128, 128});
  add(f8e5m2(), {64, 128, 256});
  all.run();
}

TEST_CASE("sums of fp8 that are not promoted are found by the results", "[emulator]") {
  const Graph traced = plain<f8e4m3, f32>({64, 64, 128}).graph();
  const Graph graph = run_passes(traced);
  const Sizes of{64, 64, 1000, Numbers::positive};
  Problem<f8e4m3> problem(of);
  std::vector<f32> y = nines<f32>(of);
  const std::vector<Argument> arguments{problem.x_argument(), problem.w_argument(), dense_argument(y, {of.m, of.n})};
  const Plan right = make_plan(graph, classify(graph, arguments), Arch::sm_90a, {.verify = true});
  Plan dropped = right, added = right;
  place_of<PromoteSums>(dropped, 1).drop();
  // wgmma adds up all k-iterations, whose sums are promoted at the end.
  for (const std::size_t part : {0, 1}) {
    the<Wgmma>(added, part).overwrites = false;
    place_of<PromoteSums>(added, 0).drop();
  }
  StepPlace last = place_of<PromoteSums>(added, 0);
  last.body->insert(last.body->begin() + static_cast<std::ptrdiff_t>(last.index), Step(last.step()));
  the<PromoteSums>(added, 0).sums = the<Wgmma>(added, 0).out;
  const std::vector<KernelSource> sources{kernel_source(right), kernel_source(dropped), kernel_source(added)};
  const Emulator emulator = Emulator::compile(sources);
  std::vector<std::string> wrong;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    CHECK(emulator.run(i, graph, arguments, std::vector<std::int64_t>{1, 1}, one_block).text() == "");
    wrong.push_back(problem.difference(y));
    if (i == 2) CHECK(problem.errors(y).most < 0x1p-9);  // some bits are lost
  }
  CHECK(wrong[0] == "");
  CHECK(wrong[1] != "");
  CHECK(wrong[2] != "");
}
#endif

}  // namespace test_warp_specialized_8_bits
