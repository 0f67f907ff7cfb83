// Matmuls in a loop over k, with tiles that are warp-specialized on sm_90a: compared on any device with sums of small
// whole numbers, which are exact in any order.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "codegen/make_plan.hpp"
#include "codegen/passes.hpp"
#include "codegen/plan/remarks.hpp"
#include "model/kernels.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/plan_steps.hpp"
#include "support/plans.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"

namespace test_warp_specialized_matmul {

using namespace tessera::internal;

namespace {

/// For sm_90a, with tensors whose contiguous axes are given, by parameter.
codegen::Plan plan_of(const Graph& traced, const std::vector<int>& unit_axes) {
  return plan_with(traced, [&](Variant& variant) {
    for (std::size_t i = 0; i < unit_axes.size(); ++i)
      variant.tensors[i].contiguous_axis = static_cast<std::int8_t>(unit_axes[i]);
  });
}

/// Is the kernel warp-specialized?
bool has_roles(const Graph& traced, const std::vector<int>& unit_axes) {
  const codegen::Plan plan = plan_of(traced, unit_axes);
  for (const std::string& note : notes(plan)) UNSCOPED_INFO(note);
  return plan.phases[0].roles.size() > 1;
}

/// Does a step load a tile of a tensor that is written, other than directly before the store?
bool loads(const Graph& traced, const std::vector<int>& unit_axes) {
  const codegen::Plan plan = plan_of(traced, unit_axes);
  return std::ranges::any_of(places_of<codegen::Load>(const_cast<codegen::Plan&>(plan)), [&](const StepPlace& place) {
    const codegen::Load& load = place.step().action.get<codegen::Load>();
    const auto parameter = static_cast<std::size_t>(load.access.parameter);
    return !load.access.from_here && plan.tensors[parameter].access == Access::in_out;
  });
}

/// Where rows of a matrix are in memory: the first after `at` elements, and `gap` of them after each.
struct Apart {
  int at = 0, gap = 0;
};

/// Operands of a matmul: A [m,k] and B [k,n], either of them transposed in memory.
struct Sizes {
  int m, n, k;
  bool a_transposed = false, b_transposed = false;
  int seed = 0;  ///< for B's elements
  Apart a = {}, b = {};
};

/// A and B, of -1, 0 and 1, and their exact product.
template <class T>
class Problem {
 public:
  explicit Problem(const Sizes& of) : of_(of), sums_(static_cast<std::size_t>(of.m) * of.n) {
    std::mt19937 rng(static_cast<unsigned>(of.m * 31 + of.n * 7 + of.k));
    const std::vector<int> a = numbers(rng, of.m * of.k);
    rng.discard(static_cast<unsigned>(of.seed));
    const std::vector<int> b = numbers(rng, of.k * of.n);
    for (int i = 0; i < of.m; ++i)
      for (int l = 0; l < of.k; ++l)
        for (int j = 0; j < of.n; ++j) sums_[at(i, j)] += static_cast<float>(a[i * of.k + l] * b[l * of.n + j]);
    x = matrix(a, of.m, of.k, of.a_transposed, of.a);
    w = matrix(b, of.k, of.n, of.b_transposed, of.b);
  }

  Tensor<T, 2> x, w;
  double sum(int row, int column) const { return sums_[at(row, column)]; }
  std::vector<T> x_memory() const { return memory_[0].to_vector(); }
  std::vector<T> w_memory() const { return memory_[1].to_vector(); }
  std::vector<int> unit_axes() const { return {of_.a_transposed ? 0 : 1, of_.b_transposed ? 0 : 1}; }

  /// Empty, or the first element of y that differs from `expected` for its row, column and sum, rounded to its type.
  template <class O>
  std::string difference(const Tensor<O, 2>& y, const std::function<double(int, int, double)>& expected,
                         double tolerance = 0) const {
    const std::vector<O> got = y.to_vector();
    for (int i = 0; i < of_.m; ++i)
      for (int j = 0; j < of_.n; ++j) {
        const double exact = expected(i, j, sums_[at(i, j)]),
                     found = static_cast<double>(static_cast<float>(got[at(i, j)])),
                     rounded = static_cast<double>(static_cast<float>(O(static_cast<float>(exact))));
        if (!(std::abs(found - rounded) <= tolerance * (1 + std::abs(sums_[at(i, j)]))))
          return fmt::format("[{},{}] is {}, not {}", i, j, found, rounded);
      }
    return {};
  }

 private:
  std::size_t at(int i, int j) const { return static_cast<std::size_t>(i) * of_.n + j; }
  static std::vector<int> numbers(std::mt19937& rng, int count) {
    std::vector<int> result(static_cast<std::size_t>(count));
    for (int& x : result) x = static_cast<int>(rng() % 3) - 1;
    return result;
  }
  Tensor<T, 2> matrix(const std::vector<int>& values, int rows, int columns, bool transposed, const Apart& apart) {
    const int stride = (transposed ? rows : columns) + apart.gap;
    const std::size_t count = static_cast<std::size_t>(transposed ? columns : rows) * stride + apart.at;
    std::vector<T> memory(count, T(1000.0f));
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        memory[static_cast<std::size_t>(apart.at + (transposed ? j * stride + i : i * stride + j))] =
            T(static_cast<float>(values[static_cast<std::size_t>(i) * columns + j]));
    memory_.push_back(tensor<T, 1>({static_cast<int>(count)}, memory));
    return Tensor<T, 2>(test_device(), memory_.back().data() + apart.at, {rows, columns},
                        {transposed ? 1 : stride, transposed ? stride : 1});
  }

  Sizes of_;
  std::vector<float> sums_;
  std::vector<Tensor<T, 1>> memory_;
};

template <class O>
Tensor<O, 2> full_of(int rows, int columns, float value) {
  return tensor<O, 2>({rows, columns}, std::vector<O>(static_cast<std::size_t>(rows) * columns, O(value)));
}
std::vector<float> whole_numbers(int count, int modulus) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) result[static_cast<std::size_t>(i)] = static_cast<float>(i % modulus - modulus / 2);
  return result;
}

// --- tiles, types and orders

template <class T, class O>
auto plain(MatmulTiles tiles) {
  return kernel("plain", [=](In<T, 2> x, In<T, 2> w, tessera::internal::Out<O, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    store(y, {m, n}, cast<O>(kernels::matmul<T>(x, w, m, n, tiles)));
  });
}

template <class T, class O>
void check_plain(const MatmulTiles& tiles, const Sizes& of) {
  INFO(fmt::format("tiles of [{},{}] by {}, {}x{}x{}{}{}, {} to {}", tiles.m, tiles.n, tiles.k, of.m, of.n, of.k,
                   of.a_transposed ? ", left transposed" : "", of.b_transposed ? ", right transposed" : "",
                   name(element_type<T>), name(element_type<O>)));
  const auto k = plain<T, O>(tiles);
  const Problem<T> problem(of);
  CHECK(has_roles(k.graph(), problem.unit_axes()));
  const Tensor<O, 2> y = full_of<O>(of.m, of.n, 99);
  launch(test_device().stream(), k, problem.x, problem.w, y);
  CHECK(problem.difference(y, [](int, int, double sum) { return sum; }) == "");
}

// Warp-specialized, unless two stages of operands do not fit beside the staged output.
bool fits(const MatmulTiles& tiles) { return tiles.m < 256 || tiles.k == 64 || tiles.n == 64; }

}  // namespace

TEST_CASE("warp-specialized matmul: tiles, types and orders", "[cpu]") {
  Cases cases(52);
  int number = 0;
  for (const int m : {64, 128, 256})
    for (const int n : {64, 96, 128, 192, 256})
      for (const int k : {64, 128}) {
        if ((m == 256 && n == 256) || !fits({m, n, k}) || cases.skip()) continue;
        // 96 columns of a right operand are no multiple of a panel, nor is the 16-bit result's tile.
        const Sizes of{m + 40, n + 24, 2 * k + 8, number % 2 == 1, n == 96 || number % 4 > 1};
        const auto check = number % 3 == 0   ? check_plain<f16, f16>
                           : number % 3 == 1 ? check_plain<bf16, f32>
                                             : check_plain<bf16, bf16>;
        check({m, n, k}, of);
        ++number;
      }
}

// Rows of a narrow right operand run along k: across, they would have less than 128 bytes.
TEST_CASE("warp-specialized matmul: narrow tiles", "[cpu]") {
  Cases cases(20);
  const Apart odd{.at = 0, .gap = 1}, fours{.at = 4};
  for (const int m : {64, 128})
    for (const int n : {16, 32})
      for (const int k : {64, 128}) {
        if (cases.skip()) continue;
        check_plain<bf16, bf16>({m, n, k}, {m + 40, 3 * n + 8, 3 * k + 8, m == 128, true});
        check_plain<f16, f32>({m, n, k}, {17, n + 3, 2 * k, false, true});
        check_plain<bf16, f32>({m, n, k}, {.m = 70, .n = 40, .k = k + 9, .b_transposed = true, .a = fours, .b = odd});
      }
  const auto across = plain<bf16, bf16>({64, 32, 64});
  CHECK_FALSE(has_roles(across.graph(), {1, 1}));
  CHECK(notes(plan_of(across.graph(), {1, 1})).front() ==
        "not warp-specialized: [64,32] bf16 cannot be divided into panels of 8 rows of 128 bytes");
}

TEST_CASE("warp-specialized matmul: results of every type", "[cpu]") {
  Cases cases(8);
  const Sizes of{72, 136, 136};
  const Problem<bf16> problem(of);
  const auto check = [&]<class O>(O) {
    INFO(name(element_type<O>));
    const auto k = kernel("magnitudes", [](In<bf16, 2> x, In<bf16, 2> w, tessera::internal::Out<O, 2> y) {
      auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 128));
      store(y, {m, n}, cast<O>(abs(kernels::matmul<bf16>(x, w, m, n, {64, 128, 64}))));
    });
    CHECK(has_roles(k.graph(), problem.unit_axes()));
    const Tensor<O, 2> y = full_of<O>(of.m, of.n, 99);
    launch(test_device().stream(), k, problem.x, problem.w, y);
    CHECK(problem.difference<O>(y, [](int, int, double sum) { return std::abs(sum); }) == "");
  };
  const auto check_some = [&]<class... O>(O... types) { ((cases.skip() ? void() : check(types)), ...); };
  check(i16());  // as whole numbers, like f16 and bf16
  check(u16());
  check_some(i8(), u8(), i32(), u32(), i64(), u64(), f64(), f8e4m3());
}

TEST_CASE("warp-specialized matmul: a square operand, in any order", "[cpu]") {
  Cases cases(8);
  for (const bool a_transposed : {true, false})
    for (const bool b_transposed : {false, true}) {
      if (!cases.skip()) check_plain<bf16, bf16>({64, 64, 64}, {72, 136, 72, a_transposed, b_transposed});
      if (!cases.skip()) check_plain<f16, f32>({128, 128, 128}, {136, 80, 136, a_transposed, b_transposed});
    }
}

// Boxes are cut to the number of existing rows; the stage's other rows, which enter the sum where rows run along k, are
// zeros.
TEST_CASE("warp-specialized matmul: tensors of fewer rows than tiles", "[cpu]") {
  Cases cases(24);
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 64}, {128, 256, 64}, {64, 128, 128}})
    for (const Sizes& of : {Sizes{1, 72, 200}, {16, 8, 136}, {56, 200, 8}, {8, 16, 40}}) {
      if (!cases.skip()) check_plain<bf16, bf16>(tiles, of);
      if (!cases.skip() && of.m >= 8) check_plain<f16, f32>(tiles, {of.m, of.n, of.k, true, true});
    }
}

// Rows whose strides are no multiple of 16 bytes, or an unaligned first element: 2, 4 or 8 bytes at a time.
TEST_CASE("warp-specialized matmul: operands that are not TMA-addressable", "[cpu]") {
  Cases cases(24);
  const Apart odd{.at = 0, .gap = 1}, one_in{.at = 1}, pairs{.at = 2, .gap = 2}, fours{.at = 4};
  const auto check = [&](const MatmulTiles& tiles, Sizes of) {
    const Apart a = std::exchange(of.a, {}), b = std::exchange(of.b, {});
    for (const bool left : {false, true})
      for (const bool right : {false, true}) {
        if ((!left && !right) || cases.skip()) continue;
        of.a = left ? a : Apart{};
        of.b = right ? b : Apart{};
        check_plain<bf16, bf16>(tiles, of);
      }
  };
  check({64, 64, 64}, {.m = 72, .n = 136, .k = 144, .a = odd, .b = one_in});
  check({64, 64, 64}, {.m = 80, .n = 80, .k = 96, .a_transposed = true, .b_transposed = true, .a = pairs, .b = fours});
  check({128, 128, 64}, {.m = 144, .n = 160, .k = 80, .a = fours, .b = pairs});
  check({128, 192, 64}, {.m = 136, .n = 200, .k = 72, .b_transposed = true, .a = one_in, .b = odd});
  check({128, 256, 64}, {.m = 200, .n = 264, .k = 136, .a_transposed = true, .a = odd, .b = odd});
  // No extent is even, nor any row stride; and y is stored from registers.
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      if (!cases.skip()) check_plain<f16, f16>({64, 128, 128}, {67, 131, 133, a_transposed, b_transposed});
      if (!cases.skip()) check_plain<bf16, f32>({128, 64, 64}, {131, 67, 71, a_transposed, b_transposed});
    }
}

TEST_CASE("warp-specialized matmul: many tiles and k-iterations", "[cpu]") {
  check_plain<bf16, bf16>({64, 64, 64}, {64 * 7, 64 * 3, 64});
  check_plain<bf16, bf16>({64, 64, 64}, {64 * 3, 64 * 3, 64 * 11 - 24});
  check_plain<bf16, f32>({128, 192, 64}, {128, 192, 64});  // one, for two consumer groups
  // As many k-iterations as stages, for consumer groups in turn: one, and more.
  for (const int k_iterations : {1, 3}) {
    const auto k = kernel("k_iterations", [=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
      auto [m, n] = blocks(3, 2);
      Var acc = zeros<f32>({64, 64});
      for (Index i : range(k_iterations)) acc = mma(load(x, {m, i}, {64, 64}), load(w, {i, n}, {64, 64}), acc);
      store(y, {m, n}, acc);
    });
    const Problem<bf16> problem({64 * 3, 64 * 2, 64 * k_iterations - 16});
    CHECK(has_roles(k.graph(), problem.unit_axes()));
    const auto y = full_of<f32>(64 * 3, 64 * 2, 99);
    launch(test_device().stream(), k, problem.x, problem.w, y);
    CHECK(problem.difference(y, [](int, int, double sum) { return sum; }) == "");
  }
}

TEST_CASE("warp-specialized matmul: a row, a column and single elements added to the accumulators", "[cpu]") {
  const MatmulTiles tiles{64, 64, 64};
  const auto k = kernel("epilogue", [=](In<bf16, 2> x, In<bf16, 2> w, In<f32, 1> bias, In<f32, 2> scale,
                                        In<f32, 2> added, Out<bf16, 2> y, Out<bf16, 2> z, Out<f32, 2> u) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const Tile sums = kernels::matmul<bf16>(x, w, m, n, tiles);
    const Tile scaled = sums * load(scale, {m, 0}, {tiles.m, 1}) + load(bias, {n}, {tiles.n});
    store(y, {m, n}, cast<bf16>(scaled));
    store(z, {m, n}, cast<bf16>(load(added, {m, n}, {tiles.m, tiles.n}) - sums));
    store(u, {m, n}, scaled * 0.5f);
  });
  for (const Sizes& of : {Sizes{200, 136, 72}, {128, 64, 64}}) {
    const Problem<bf16> problem(of);
    CHECK(has_roles(k.graph(), problem.unit_axes()));
    const std::vector<float> b = whole_numbers(of.n, 9), s = whole_numbers(of.m, 5), a = whole_numbers(of.m * of.n, 17);
    const auto y = full_of<bf16>(of.m, of.n, 99), z = full_of<bf16>(of.m, of.n, 99);
    const auto u = full_of<f32>(of.m, of.n, 99);
    launch(test_device().stream(), k, problem.x, problem.w, tensor<f32, 1>({of.n}, b), tensor<f32, 2>({of.m, 1}, s),
           tensor<f32, 2>({of.m, of.n}, a), y, z, u);
    const auto scaled = [&](int i, int j, double sum) {
      return sum * s[static_cast<std::size_t>(i)] + b[static_cast<std::size_t>(j)];
    };
    CHECK(problem.difference(y, scaled) == "");
    CHECK(problem.difference(
              z, [&](int i, int j, double sum) { return a[static_cast<std::size_t>(i) * of.n + j] - sum; }) == "");
    CHECK(problem.difference(u, [&](int i, int j, double sum) { return scaled(i, j, sum) * 0.5; }) == "");
  }
}

TEST_CASE("warp-specialized matmul: padding of added tiles", "[cpu]") {
  const MatmulTiles tiles{64, 64, 64};
  const auto k = kernel("padded", [=](In<bf16, 2> x, In<bf16, 2> w, In<f32, 1> bias, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    store(y, {m, n}, kernels::matmul<bf16>(x, w, m, n, tiles) + load(bias, {n}, {tiles.n}, 7));
  });
  const Problem<bf16> problem({72, 136, 72});
  CHECK(has_roles(k.graph(), problem.unit_axes()));
  const std::vector<float> bias = whole_numbers(100, 9);
  const auto y = full_of<f32>(72, 136, 99);
  launch(test_device().stream(), k, problem.x, problem.w, tensor<f32, 1>({100}, bias), y);
  CHECK(problem.difference(
            y, [&](int, int j, double sum) { return sum + (j < 100 ? bias[static_cast<std::size_t>(j)] : 7); }) == "");
}

// No read of y moves before a store to y: the elements that a part of the tile needs are read first.
TEST_CASE("a residual is read in parts that registers hold", "[plan]") {
  const auto parts = [](const MatmulTiles& tiles) {
    const auto k = kernels::linear_residual<bf16, bf16>(tiles);
    codegen::Plan plan = plan_of(k.graph(), {1, 1, 0, 1});
    std::vector<int> columns;
    bool reads = false;  // since the last store
    for (const StepPlace& place : steps_of(plan)) {
      if (const auto* const load = place.step().action.as<codegen::Load>())
        reads |= plan.tensors[static_cast<std::size_t>(load->access.parameter)].access == Access::in_out;
      const auto* const store = place.step().action.as<codegen::Store>();
      if (!store) continue;
      CHECK((std::exchange(reads, false) && store->sweep.reads.empty()));
      CHECK(store->sweep.origin[1] == std::accumulate(columns.begin(), columns.end(), 0));
      columns.push_back(store->sweep.shape[1]);
    }
    return columns;
  };
  CHECK(parts({128, 192, 64}) == std::vector{64, 64, 64});
  CHECK(parts({128, 256, 64}) == std::vector{64, 64, 64, 64});
  CHECK(parts({64, 64, 64}) == std::vector{64});
}

// Tiles that are stored: where they were loaded, and the steps in between. Only a tile that is part of one store, to
// its own index, with nothing written in between, is read at the store; others are loaded early and retained.
TEST_CASE("warp-specialized matmul: tiles that are read and written", "[cpu]") {
  constexpr MatmulTiles tiles{64, 64, 64};
  const Sizes of{136, 72, 72};
  const Problem<bf16> problem(of);
  const std::vector<float> before = whole_numbers(of.m * 2 * of.n, 31);
  // y, z are [m, 2 n]; blocks() covers the left half.
  const auto check = [&](const char* name, bool is_loaded, const auto& epilogue, const auto& new_y, const auto& new_z) {
    INFO(name);
    const auto k = kernel(name, [&](In<bf16, 2> x, In<bf16, 2> w, InOut<f32, 2> y, InOut<f32, 2> z) {
      auto [m, n] = blocks(cdiv(x.extent(0), tiles.m), cdiv(w.extent(1), tiles.n));
      epilogue(kernels::matmul<bf16>(x, w, m, n, tiles), y.slice(1, 0, w.extent(1)),
               y.slice(1, w.extent(1), w.extent(1)), z.slice(1, 0, w.extent(1)), m, n);
    });
    CHECK(has_roles(k.graph(), problem.unit_axes()));
    CHECK(loads(k.graph(), problem.unit_axes()) == is_loaded);
    const auto y = tensor<f32, 2>({of.m, 2 * of.n}, before), z = tensor<f32, 2>({of.m, 2 * of.n}, before);
    launch(test_device().stream(), k, problem.x, problem.w, y, z);
    const std::vector<float> got_y = y.to_vector(), got_z = z.to_vector();
    for (int i = 0; i < of.m; ++i)
      for (int j = 0; j < 2 * of.n; ++j) {
        const auto at = [&](int j) { return static_cast<std::size_t>(i) * 2 * of.n + j; };
        const auto old = [&](int j) { return before[at(j)]; };
        INFO(i << "," << j);
        REQUIRE(got_y[at(j)] == new_y(i, j, old));
        REQUIRE(got_z[at(j)] == new_z(i, j, old));
      }
  };
  const auto unchanged = [](int, int j, const auto& old) { return old(j); };
  const auto is_left = [&](int j) { return j < of.n; };
  const auto added = [&](int i, int j, const auto& old) {
    return old(j) + (is_left(j) ? static_cast<float>(problem.sum(i, j)) : 0);
  };
  const auto both = [&](int i, int j, const auto& old) {
    return is_left(j) ? old(j) * static_cast<float>(problem.sum(i, j)) : old(j);
  };
  const auto tile_of = [&](const auto& view, const Index& m, const Index& n) {
    return Tile(load(view, {m, n}, {tiles.m, tiles.n}));
  };
  check(
      "residual", false,
      [&](const auto& sums, const auto& left, const auto&, const auto&, const Index& m, const Index& n) {
    const Tile old = tile_of(left, m, n);
    store(left, {m, n}, old + sums);
      },
      added, unchanged);
  check(
      "overwritten", true,
      [&](const auto& sums, const auto& left, const auto&, const auto& z, const Index& m, const Index& n) {
    const Tile old = tile_of(left, m, n);
    store(left, {m, n}, sums);
    store(z, {m, n}, sums);
    store(left, {m, n}, old + sums);
      },
      added,
      [&](int i, int j, const auto& old) { return is_left(j) ? static_cast<float>(problem.sum(i, j)) : old(j); });
  check(
      "elsewhere", true,
      [&](const auto& sums, const auto& left, const auto& right, const auto&, const Index& m, const Index& n) {
    const Tile old = tile_of(right, m, n);
    store(left, {m, n}, old + sums);
      },
      [&](int i, int j, const auto& old) {
    return is_left(j) ? old(j + of.n) + static_cast<float>(problem.sum(i, j)) : old(j);
  },
      unchanged);
  check(
      "twice", true,
      [&](const auto& sums, const auto& left, const auto&, const auto& z, const Index& m, const Index& n) {
    const Tile old = tile_of(left, m, n);
    store(left, {m, n}, old + sums);
    store(z, {m, n}, old * sums);
      },
      added, both);
  check(
      "in_a_branch", true,
      [&](const auto& sums, const auto& left, const auto&, const auto&, const Index& m, const Index& n) {
    const Tile old = tile_of(left, m, n);
    if_(m >= 0, [&] { store(left, {m, n}, sums); });
    if_(m >= 0, [&] { store(left, {m, n}, old + sums); });
      },
      added, unchanged);
}

// 16-bit elements, where a thread may store elements that another one of four has read.
TEST_CASE("warp-specialized matmul: a 16-bit residual", "[cpu]") {
  constexpr MatmulTiles tiles{64, 64, 64};
  const auto residual = kernel("residual", [=](In<f16, 2> x, In<f16, 2> w, InOut<f16, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const Tile old = load(y, {m, n}, {tiles.m, tiles.n});
    store(y, {m, n}, cast<f16>(cast<f32>(old) + kernels::matmul<f16>(x, w, m, n, tiles)));
  });
  const auto kept = kernel("kept", [=](In<f16, 2> x, In<f16, 2> w, InOut<f16, 2> y, Out<f16, 2> z) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const Tile old = load(y, {m, n}, {tiles.m, tiles.n});
    store(y, {m, n}, cast<f16>(kernels::matmul<f16>(x, w, m, n, tiles)));
    store(z, {m, n}, old);
  });
  const Sizes of{64, 128, 72};
  const Problem<f16> problem(of);
  std::vector<f16> before;
  for (const float value : whole_numbers(of.m * of.n, 17)) before.push_back(f16(value));
  const auto y = tensor<f16, 2>({of.m, of.n}, before);
  launch(test_device().stream(), residual, problem.x, problem.w, y);
  const auto old = [&](int i, int j) { return float(before[static_cast<std::size_t>(i) * of.n + j]); };
  CHECK(problem.difference(y, [&](int i, int j, double sum) { return sum + old(i, j); }) == "");
  y.copy_from(before);
  const auto z = full_of<f16>(of.m, of.n, 99);
  launch(test_device().stream(), kept, problem.x, problem.w, y, z);
  CHECK(problem.difference(y, [](int, int, double sum) { return sum; }) == "");
  CHECK(problem.difference(z, [&](int i, int j, double) { return old(i, j); }) == "");
}

TEST_CASE("warp-specialized matmul: functions of the accumulators, and of their indices", "[cpu]") {
  const MatmulTiles tiles{64, 128, 64};
  const auto k = kernel("masked", [=](In<f16, 2> x, In<f16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    const Tile value = gelu_tanh(kernels::matmul<f16>(x, w, m, n, tiles));
    const Tile rows = m * tiles.m + iota({tiles.m, 1}, 0), columns = n * tiles.n + iota({1, tiles.n}, 1);
    store(y, {m, n}, where(columns <= rows, value, 7.0f));
  });
  const Sizes of{136, 168, 72};
  const Problem<f16> problem(of);
  CHECK(has_roles(k.graph(), problem.unit_axes()));
  const auto y = full_of<f32>(of.m, of.n, 99);
  launch(test_device().stream(), k, problem.x, problem.w, y);
  const auto gelu = [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); };
  CHECK(problem.difference(
            y, [&](int i, int j, double sum) { return j <= i ? gelu(sum) : 7.0; }, 1e-6) == "");
}

TEST_CASE("warp-specialized matmul: reductions of rows", "[cpu]") {
  for (const MatmulTiles& tiles : {MatmulTiles{64, 64, 64}, {128, 128, 64}, {128, 256, 64}}) {
    const Sizes of{.m = 136, .n = 2 * tiles.n, .k = 200};
    const Problem<bf16> problem(of);
    const auto k = kernel("rows", [=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> most, Out<i32, 2> place,
                                      Out<f32, 2> total, Out<f32, 2> y) {
      auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
      const Tile sums = kernels::matmul<bf16>(x, w, m, n, tiles);
      const Tile top = max(sums, 1);
      store(most, {m, n}, top);
      store(place, {m, n}, argmax(sums, 1));
      store(total, {m, n}, sum(sums * sums, 1));
      store(y, {m, n}, sums - top);
    });
    INFO(tiles.m << " x " << tiles.n);
    CHECK(has_roles(k.graph(), problem.unit_axes()));
    const auto most = full_of<f32>(of.m, 2, 99), total = full_of<f32>(of.m, 2, 99), y = full_of<f32>(of.m, of.n, 99);
    const auto place = tensor<i32, 2>({of.m, 2}, std::vector<i32>(static_cast<std::size_t>(of.m) * 2, 99));
    launch(test_device().stream(), k, problem.x, problem.w, most, place, total, y);
    const auto got_most = most.to_vector(), got_total = total.to_vector(), got = y.to_vector();
    const auto got_place = place.to_vector();
    for (int i = 0; i < of.m; ++i)
      for (int part = 0; part < 2; ++part) {
        INFO("row " << i << ", tile " << part);
        double top = -1e9, squares = 0;
        int where = 0;
        for (int j = 0; j < tiles.n; ++j) {
          const double sum = problem.sum(i, part * tiles.n + j);
          squares += sum * sum;
          if (sum > top) where = j;
          top = std::max(top, sum);
        }
        const auto at = static_cast<std::size_t>(i) * 2 + part;
        REQUIRE(got_most[at] == top);
        REQUIRE(got_place[at] == where);
        REQUIRE(got_total[at] == squares);
        for (int j = part * tiles.n; j < (part + 1) * tiles.n; ++j)
          REQUIRE(got[static_cast<std::size_t>(i) * of.n + j] == problem.sum(i, j) - top);
      }
  }
}

TEST_CASE("warp-specialized matmul: several in one loop", "[cpu]") {
  // Two with one left operand, stored together and separately; like SwiGLU's gate and up.
  for (const MatmulTiles& tiles :
       {MatmulTiles{64, 64, 64}, {64, 128, 64}, {128, 128, 64}, {128, 192, 64}, {128, 256, 64}}) {
    const Sizes of{.m = 136, .n = 264, .k = 200};
    const Problem<bf16> gate(of), up({.m = of.m, .n = of.n, .k = of.k, .b_transposed = true, .seed = 1});
    const auto k = kernel("gated", [=](In<bf16, 2> x, In<bf16, 2> w, In<bf16, 2> v, Out<f32, 2> y, Out<bf16, 2> z) {
      auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
      Var a = zeros<f32>({tiles.m, tiles.n}), b = full<f32>({tiles.m, tiles.n}, 1);
      for (Index i : range(cdiv(x.extent(1), tiles.k))) {
        const Tile left = load(x, {m, i}, {tiles.m, tiles.k});
        a = mma(left, load(w, {i, n}, {tiles.k, tiles.n}), a);
        b = mma(left, load(v, {i, n}, {tiles.k, tiles.n}), b);
      }
      const Tile<f32, 2> gates = a, ups = b;
      store(y, {m, n}, gates * ups);
      store(z, {m, n}, cast<bf16>(ups));
    });
    INFO(tiles.m << " x " << tiles.n);
    CHECK(has_roles(k.graph(), {1, 1, 0}) == (tiles.n < 256));  // else 256 registers per thread for accumulators
    const auto y = full_of<f32>(of.m, of.n, 99);
    const auto z = full_of<bf16>(of.m, of.n, 99);
    launch(test_device().stream(), k, gate.x, gate.w, up.w, y, z);
    CHECK(gate.difference(y, [&](int i, int j, double sum) { return sum * (1 + up.sum(i, j)); }) == "");
    CHECK(up.difference(z, [](int, int, double sum) { return 1 + sum; }) == "");
  }
  // Three, each with its own operands.
  const MatmulTiles tiles{64, 64, 64};
  const Sizes of{.m = 72, .n = 136, .k = 136};
  const Problem<f16> first(of), second({.m = of.m, .n = of.n, .k = of.k, .a_transposed = true, .seed = 1});
  const auto k = kernel("three", [=](In<f16, 2> x0, In<f16, 2> w0, In<f16, 2> x1, In<f16, 2> w1, Out<f32, 2> y0,
                                     Out<f32, 2> y1, Out<f32, 2> y2) {
    auto [m, n] = blocks(cdiv(y0.extent(0), tiles.m), cdiv(y0.extent(1), tiles.n));
    Var a = zeros<f32>({64, 64}), b = zeros<f32>({64, 64}), c = zeros<f32>({64, 64});
    for (Index i : range(cdiv(x0.extent(1), tiles.k))) {
      const Tile left = load(x0, {m, i}, {64, 64}), right = load(w0, {i, n}, {64, 64});
      const Tile other = load(x1, {m, i}, {64, 64});
      a = mma(left, right, a);
      b = mma(other, load(w1, {i, n}, {64, 64}), b);
      c = mma(other, right, c);
    }
    const Tile<f32, 2> sums[] = {a, b, c};
    store(y0, {m, n}, sums[0]);
    store(y1, {m, n}, sums[1]);
    store(y2, {m, n}, sums[2] - sums[1]);
  });
  CHECK(has_roles(k.graph(), {1, 1, 0, 1}));
  const auto y0 = full_of<f32>(of.m, of.n, 99), y1 = full_of<f32>(of.m, of.n, 99), y2 = full_of<f32>(of.m, of.n, 99);
  launch(test_device().stream(), k, first.x, first.w, second.x, second.w, y0, y1, y2);
  CHECK(first.difference(y0, [](int, int, double sum) { return sum; }) == "");
  CHECK(second.difference(y1, [](int, int, double sum) { return sum; }) == "");
  CHECK(first.difference(y2, [&](int i, int j, double sum) { return sum - second.sum(i, j); }) == "");
}

TEST_CASE("warp-specialized matmul: accumulators that start from a tile, and stores under a condition", "[cpu]") {
  const MatmulTiles tiles{64, 64, 64};
  const auto k = kernel("started", [=](In<bf16, 2> x, In<bf16, 2> w, In<f32, 2> start, Out<f32, 2> y, Out<f32, 2> z) {
    auto [m, n] = blocks(cdiv(y.extent(0), tiles.m), cdiv(y.extent(1), tiles.n));
    Var acc = load(start, {m, n}, {tiles.m, tiles.n});
    for (Index i : range(cdiv(x.extent(1), tiles.k)))
      acc = mma(load(x, {m, i}, {tiles.m, tiles.k}), load(w, {i, n}, {tiles.k, tiles.n}), acc);
    const Tile sums = acc;
    if_(m % 2 == 0, [&] { store(y, {m, n}, sums); });
    if_(m % 2 != 0, [&] { store(y, {m, n}, -sums); });
    store(z, {m, n}, sums + 1.0f);
  });
  const Sizes of{200, 136, 136};
  const Problem<bf16> problem(of);
  CHECK(has_roles(k.graph(), problem.unit_axes()));
  const std::vector<float> s = whole_numbers(of.m * of.n, 23);
  const auto y = full_of<f32>(of.m, of.n, 99), z = full_of<f32>(of.m, of.n, 99);
  launch(test_device().stream(), k, problem.x, problem.w, tensor<f32, 2>({of.m, of.n}, s), y, z);
  const auto sums = [&](int i, int j, double sum) { return sum + s[static_cast<std::size_t>(i) * of.n + j]; };
  CHECK(problem.difference(
            y, [&](int i, int j, double sum) { return i / tiles.m % 2 ? -sums(i, j, sum) : sums(i, j, sum); }) == "");
  CHECK(problem.difference(z, [&](int i, int j, double sum) { return sums(i, j, sum) + 1; }) == "");
}

TEST_CASE("warp-specialized matmul: a long k axis, and few CTAs to split it", "[cpu]") {
  check_plain<bf16, f32>({64, 64, 64}, {72, 40, 64 * 37 + 24});
  check_plain<bf16, bf16>({128, 128, 64}, {136, 40, 64 * 37 + 24});
  check_plain<f16, f32>({64, 96, 64}, {64, 96, 64 * 11, false, true});
  check_plain<bf16, bf16>({64, 64, 128}, {16, 72, 128 * 9, false, false});
  check_plain<bf16, bf16>({64, 128, 64}, {40, 128, 64 * 8, false, false});
}

// One load; one matmul uses the tile itself, another its transpose, and a third both.
TEST_CASE("warp-specialized matmul: a tile, and the same transposed", "[cpu]") {
  const int t = 64, m = 128, n = 192, k = 192;
  const auto both = kernel("both", [=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y, Out<f32, 2> transposed) {
    auto [i, j] = blocks(y.extent(0) / t, y.extent(1) / t);
    Var sums = zeros<f32>({t, t}), others = zeros<f32>({t, t});
    for (Index l : range(cdiv(x.extent(1), t))) {
      const Tile left = load(x, {i, l}, {t, t}), right = load(w, {l, j}, {t, t});
      sums = mma(left, right, sums);
      others = mma(transpose(left), transpose(right), others);
    }
    store(y, {i, j}, sums);
    store(transposed, {i, j}, others);
  });
  const auto square = kernel("square", [=](In<bf16, 2> x, Out<f32, 2> y) {
    Index i = blocks(x.extent(0) / t);
    Var sums = zeros<f32>({t, t});
    for (Index l : range(cdiv(x.extent(1), t))) {
      const Tile tile = load(x, {i, l}, {t, t});
      sums = mma(tile, transpose(tile), sums);
    }
    store(y, {i, 0}, sums);
  });
  CHECK(has_roles(both.graph(), {}));
  CHECK(has_roles(square.graph(), {}));
  const auto numbers = [](int count, int modulus) {
    std::vector<bf16> values(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = bf16(static_cast<float>(i % modulus % 5 - 2));
    return values;
  };
  const std::vector<bf16> x = numbers(m * k, 37), w = numbers(k * n, 41);
  const auto at = [](const std::vector<bf16>& of, int columns, int i, int j) {
    return static_cast<double>(float(of[static_cast<std::size_t>(i) * columns + j]));
  };
  const auto y = full_of<f32>(m, n, 99), transposed = full_of<f32>(m, n, 99), squares = full_of<f32>(m, t, 99);
  const auto left = tensor<bf16, 2>({m, k}, x);
  launch(test_device().stream(), both, left, tensor<bf16, 2>({k, n}, w), y, transposed);
  launch(test_device().stream(), square, left, squares);
  const std::vector<float> sums = y.to_vector(), others = transposed.to_vector(), own = squares.to_vector();
  int wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0, other = 0, of_square = 0;
      const int row = i / t * t, column = j / t * t;  // of the tile
      for (int l = 0; l < k; ++l) {
        sum += at(x, k, i, l) * at(w, n, l, j);
        other += at(x, k, row + l % t, l / t * t + i % t) * at(w, n, l / t * t + j % t, column + l % t);
        if (j < t) of_square += at(x, k, i, l) * at(x, k, row + j, l);
      }
      const std::size_t here = static_cast<std::size_t>(i) * n + j;
      wrong += sums[here] != sum || others[here] != other ||
               (j < t && own[static_cast<std::size_t>(i) * t + j] != of_square);
    }
  CHECK(wrong == 0);
}

// Each CTA of a cluster has a part of the k-iterations; CTAs end in any order.
TEST_CASE("warp-specialized matmul: partials are accumulated in the same order each time", "[cpu]") {
  const MatmulTiles tiles{64, 64, 64};
  const int m = 72, n = 104, k = 64 * 41;
  const auto matmul = plain<bf16, f32>(tiles);
  std::mt19937 rng(7);
  const auto random = [&](int rows, int columns) {
    std::vector<bf16> values(static_cast<std::size_t>(rows) * columns);
    for (bf16& x : values) x = bf16(std::normal_distribution<float>()(rng));
    return tensor<bf16, 2>({rows, columns}, values);
  };
  const Tensor<bf16, 2> x = random(m, k), w = random(k, n);
  std::vector<float> first;
  for (int run = 0; run < 4; ++run) {
    const Tensor<f32, 2> y = full_of<f32>(m, n, 99);
    launch(test_device().stream(), matmul, x, w, y);
    const std::vector<float> sums = y.to_vector();
    if (first.empty()) first = sums;
    CHECK(std::memcmp(first.data(), sums.data(), sums.size() * sizeof(float)) == 0);
  }
}

// Queries, keys and values have one output each: a tile is stored to the one that contains its columns.
TEST_CASE("warp-specialized matmul: three outputs, by the columns of a tile", "[cpu]") {
  const MatmulTiles tiles{64, 64, 64};
  const int width = 128;
  const auto split = kernel("split", [=](In<bf16, 2> x, In<bf16, 2> w, Out<bf16, 2> q, Out<bf16, 2> k, Out<bf16, 2> v) {
    auto [m, n] = blocks(cdiv(x.extent(0), tiles.m), cdiv(w.extent(1), tiles.n));
    const Tile sums = cast<bf16>(kernels::matmul<bf16>(x, w, m, n, tiles));
    const Index of_one = q.extent(1) / tiles.n;
    if_(n < of_one, [&] { store(q, {m, n}, sums); });
    if_((n >= of_one) & (n < 2 * of_one), [&] { store(k, {m, n - of_one}, sums); });
    if_(n >= 2 * of_one, [&] { store(v, {m, n - 2 * of_one}, sums); });
  });
  const Sizes of{136, 3 * width, 200};
  const Problem<bf16> problem(of);
  CHECK(has_roles(split.graph(), problem.unit_axes()));
  const auto q = full_of<bf16>(of.m, width, 99), k = full_of<bf16>(of.m, width, 99), v = full_of<bf16>(of.m, width, 99);
  launch(test_device().stream(), split, problem.x, problem.w, q, k, v);
  const std::vector<bf16> outputs[] = {q.to_vector(), k.to_vector(), v.to_vector()};
  std::vector<bf16> together;
  for (int i = 0; i < of.m; ++i)
    for (const std::vector<bf16>& one : outputs)
      together.insert(together.end(), one.begin() + std::int64_t{i} * width,
                      one.begin() + (std::int64_t{i} + 1) * width);
  CHECK(problem.difference(tensor<bf16, 2>({of.m, of.n}, together), [](int, int, double sum) { return sum; }) == "");
}

TEST_CASE("warp-specialized matmul: an axis of batches", "[cpu]") {
  const MatmulTiles tiles{256, 64, 64};
  const auto k = kernel("batches", [=](In<bf16, 3> x, In<bf16, 3> w, Out<bf16, 3> y) {
    auto [b, m, n] = blocks(y.extent(0), cdiv(y.extent(1), tiles.m), cdiv(y.extent(2), tiles.n));
    Var acc = zeros<f32>({tiles.m, tiles.n});
    for (Index i : range(cdiv(x.extent(2), tiles.k)))
      acc = mma(reshape(load(x, {b, m, i}, {1, tiles.m, tiles.k}), {tiles.m, tiles.k}),
                transpose(reshape(load(w, {b, n, i}, {1, tiles.n, tiles.k}), {tiles.n, tiles.k})), acc);
    store(y, {b, m, n}, reshape(cast<bf16>(acc), {1, tiles.m, tiles.n}));
  });
  CHECK(has_roles(k.graph(), {2, 2, 2}));
  constexpr int batches = 2;
  const Sizes of{264, 72, 72, false, true};
  // The first batch belongs to one matmul, the second to the same upside down.
  const Problem<bf16> problem(of);
  const std::vector<bf16> a = problem.x_memory(), b = problem.w_memory();
  std::vector<bf16> x(a), w(b);
  for (int i = of.m; i-- > 0;) x.insert(x.end(), a.begin() + i * of.k, a.begin() + (i + 1) * of.k);
  w.insert(w.end(), b.begin(), b.end());
  const auto y =
      tensor<bf16, 3>({batches, of.m, of.n}, std::vector<bf16>(std::size_t{batches} * of.m * of.n, bf16(99)));
  launch(test_device().stream(), k, tensor<bf16, 3>({batches, of.m, of.k}, x),
         tensor<bf16, 3>({batches, of.n, of.k}, w), y);
  const std::vector<bf16> got = y.to_vector();
  const auto half = static_cast<std::ptrdiff_t>(got.size() / 2);
  const auto first = tensor<bf16, 2>({of.m, of.n}, {got.begin(), got.begin() + half}),
             second = tensor<bf16, 2>({of.m, of.n}, {got.begin() + half, got.end()});
  CHECK(problem.difference(first, [](int, int, double sum) { return sum; }) == "");
  CHECK(problem.difference(second, [&](int i, int j, double) { return problem.sum(of.m - 1 - i, j); }) == "");
}

TEST_CASE("warp-specialized matmul: operands of four and five axes", "[cpu]") {
  constexpr int heads = 3;
  const auto k = kernel("heads", [=](In<bf16, 4> x, In<bf16, 5> w, Out<f32, 3> y) {
    auto [b, m, n] = blocks(y.extent(0), cdiv(y.extent(1), 64), cdiv(y.extent(2), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index i : range(cdiv(x.extent(3), 64)))
      acc = mma(reshape(load(x, {b, m, 1, i}, {1, 64, 1, 64}), {64, 64}),
                reshape(load(w, {0, b, 0, i, n}, {1, 1, 1, 64, 64}), {64, 64}), acc);
    store(y, {b, m, n}, reshape(acc, {1, 64, 64}));
  });
  CHECK(has_roles(k.graph(), {3, 4, 2}));
  const Sizes of{72, 136, 72};
  const Problem<bf16> problem(of);
  const std::vector<bf16> a = problem.x_memory(), b = problem.w_memory();
  // In the second batch the first row comes last.
  std::vector<bf16> x, w(b);
  for (const int batch : {0, 1})
    for (int i = 0; i < of.m; ++i)
      for (int head = 0; head < heads; ++head) {
        const auto row = a.begin() + (i + batch) % of.m * of.k;
        for (int l = 0; l < of.k; ++l) x.push_back(head == 1 ? row[l] : bf16(5));
      }
  w.insert(w.end(), b.begin(), b.end());
  const auto y = tensor<f32, 3>({2, of.m, of.n}, std::vector<f32>(std::size_t{2} * of.m * of.n, 99));
  // Along an axis of one element any stride is valid.
  const auto w_memory = tensor<bf16, 1>({2 * of.k * of.n}, w);
  const Tensor<bf16, 5> strided(test_device(), w_memory.data(), {1, 2, 1, of.k, of.n}, {3, of.k * of.n, 5, of.n, 1});
  launch(test_device().stream(), k, tensor<bf16, 4>({2, of.m, heads, of.k}, x), strided, y);
  const std::vector<f32> got = y.to_vector();
  for (int batch = 0; batch < 2; ++batch)
    for (int i = 0; i < of.m; ++i)
      for (int j = 0; j < of.n; ++j)
        REQUIRE(got[static_cast<std::size_t>(batch * of.m + i) * of.n + j] == problem.sum((i + batch) % of.m, j));
}

TEST_CASE("warp-specialized matmul: tiles for other stores than that of the accumulators", "[cpu]") {
  // A residual of three axes; a row sum that is accumulated in place; and tiles that are independent of the matmul.
  const auto k = kernel("others", [](In<bf16, 2> x, In<bf16, 2> w, InOut<f32, 3> y, InOut<f32, 2> total,
                                     InOut<f32, 2> state, In<f32, 2> other, Out<f32, 2> twice) {
    auto [m, n] = blocks(cdiv(x.extent(0), 64), cdiv(w.extent(1), 64));
    const Tile sums = kernels::matmul<bf16>(x, w, m, n, {64, 64, 64});
    const Tile before = load(y, {0, m, n}, {1, 64, 64});
    store(y, {0, m, n}, before + reshape(sums, {1, 64, 64}));
    const Tile so_far = load(total, {m, n}, {64, 1});
    store(total, {m, n}, so_far + sum(sums, 1));
    store(twice, {m, n}, load(other, {m, n}, {64, 64}) * 2.0f);
    const auto part = state.slice(1, 3, 256);
    const Tile was = load(part, {m * 3 + n, 0}, {16, 256});
    store(part, {m * 3 + n, 0}, was * 0.5f);
  });
  const Sizes of{72, 136, 72};  // 2 x 3 tiles
  const Problem<bf16> problem(of);
  CHECK(has_roles(k.graph(), {1, 1, 2, 1, 1, 1, 1}));
  const std::vector<float> y = whole_numbers(of.m * of.n, 9), total = whole_numbers(of.m * 3, 5),
                           state = whole_numbers(96 * 300, 11), other = whole_numbers(of.m * of.n, 7);
  const auto device_y = tensor<f32, 3>({1, of.m, of.n}, y);
  const auto device_total = tensor<f32, 2>({of.m, 3}, total), device_state = tensor<f32, 2>({96, 300}, state);
  const auto twice = full_of<f32>(of.m, of.n, 99);
  launch(test_device().stream(), k, problem.x, problem.w, device_y, device_total, device_state,
         tensor<f32, 2>({of.m, of.n}, other), twice);
  const std::vector<float> got_y = device_y.to_vector(), got_total = device_total.to_vector(),
                           got_state = device_state.to_vector(), got_twice = twice.to_vector();
  bool same = true;
  for (int i = 0; i < of.m; ++i)
    for (int j = 0; j < of.n; ++j) {
      const auto at = static_cast<std::size_t>(i) * of.n + j;
      same &= got_y[at] == y[at] + problem.sum(i, j) && got_twice[at] == 2 * other[at];
    }
  CHECK(same);
  for (int i = 0; i < of.m; ++i)
    for (int n = 0; n < 3; ++n) {
      double sum = total[static_cast<std::size_t>(i) * 3 + n];
      for (int j = 64 * n; j < std::min(64 * n + 64, of.n); ++j) sum += problem.sum(i, j);
      same &= got_total[static_cast<std::size_t>(i) * 3 + n] == sum;
    }
  CHECK(same);
  for (int i = 0; i < 96; ++i)
    for (int j = 0; j < 300; ++j) {
      const auto at = static_cast<std::size_t>(i) * 300 + j;
      same &= got_state[at] == state[at] * (j >= 3 && j < 259 ? 0.5f : 1.0f);
    }
  CHECK(same);
}

TEST_CASE("warp-specialized matmul: operands of several axes, and of slices", "[cpu]") {
  const auto reshaped = kernel("reshaped", [=](In<bf16, 3> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 128), cdiv(y.extent(1), 64));
    Var acc = zeros<f32>({128, 64});
    for (Index k : range(cdiv(x.extent(2), 64)))
      acc = mma(reshape(load(x, {m, 0, k}, {2, 64, 64}), {128, 64}), load(w, {k, n}, {64, 64}), acc);
    store(y, {m, n}, acc);
  });
  const auto sliced = kernel("sliced", [=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 64), cdiv(y.extent(1), 64));
    Var acc = zeros<f32>({64, 64});
    for (Index k : range(cdiv(x.extent(1), 64)))
      acc = mma(load(x.slice(0, 8, 100), {m, k}, {64, 64}), load(w, {k, n}, {64, 64}), acc);
    store(y, {m, n}, acc);
  });
  const Sizes of{192, 72, 72};
  const Problem<bf16> problem(of);
  CHECK(has_roles(reshaped.graph(), {2, 1, 1}));
  CHECK(has_roles(sliced.graph(), {1, 1, 1}));
  const auto y = full_of<f32>(of.m, of.n, 99);
  launch(test_device().stream(), reshaped, tensor<bf16, 3>({3, 64, of.k}, problem.x_memory()), problem.w, y);
  CHECK(problem.difference(y, [](int, int, double sum) { return sum; }) == "");
  launch(test_device().stream(), sliced, problem.x, problem.w, y);
  CHECK(problem.difference(y, [&](int i, int j, double) { return i < 100 ? problem.sum(i + 8, j) : 0; }) == "");
}

TEST_CASE("warp-specialized matmul: tiles far outside of their tensors", "[cpu]") {
  const auto k = kernel("far", [=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y, Scalar<i32> row, Scalar<i32> shift,
                                   Scalar<i32> column, Scalar<i32> to, Scalar<i32> aside) {
    Var acc = zeros<f32>({64, 64});
    for (Index i : range(cdiv(x.extent(1), 64)))
      acc = mma(load(x, {row, i + shift}, {64, 64}), load(w, {i + shift, column}, {64, 64}), acc);
    store(y, {to, aside}, acc + 1.0f);
  });
  const Sizes of{136, 136, 64};
  const Problem<bf16> problem(of);
  CHECK(has_roles(k.graph(), problem.unit_axes()));
  constexpr int round = 1 << 26;  // number of tiles after which 32-bit element offsets wrap to 0
  for (std::size_t changed = 0; changed < 5; ++changed)
    for (const int tiles : {1, -1, round / 2, -round / 2, round, -round, round + 1, 1 - round,
                            std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
      INFO(changed << ": " << tiles);
      std::array<int, 5> at{};
      at[changed] = tiles;
      const auto y = full_of<f32>(of.m, of.n, 99);
      launch(test_device().stream(), k, problem.x, problem.w, y, at[0], at[1], at[2], at[3], at[4]);
      const auto expected = [&](int i, int j, double) {
        const auto in_tile = [](int place, int tile) { return place - std::int64_t{64} * tile; };
        const std::int64_t r = in_tile(i, at[3]), c = in_tile(j, at[4]);
        if (r < 0 || r >= 64 || c < 0 || c >= 64) return 99.0;
        const std::int64_t from_row = r + std::int64_t{64} * at[0], from_column = c + std::int64_t{64} * at[2];
        const bool inside = from_row >= 0 && from_row < of.m && from_column >= 0 && from_column < of.n && at[1] == 0;
        return 1 + (inside ? problem.sum(static_cast<int>(from_row), static_cast<int>(from_column)) : 0);
      };
      CHECK(problem.difference(y, expected) == "");
    }
}

TEST_CASE("warp-specialized matmul: accumulators that are transposed, combined, or carried on", "[cpu]") {
  // TMA cannot store transposed accumulators from their layout; a kernel whose accumulators another loop carries has a
  // single role.
  const MatmulTiles tiles{64, 64, 64};
  const auto transposed = kernel("transposed", [=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(x.extent(0), tiles.m), cdiv(w.extent(1), tiles.n));
    store(y, {n, m}, transpose(kernels::matmul<bf16>(x, w, m, n, tiles)));
  });
  const auto halves = kernel("halves", [=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y, Out<f32, 2> z) {
    auto [m, n] = blocks(cdiv(x.extent(0), tiles.m), cdiv(w.extent(1), tiles.n));
    const Tile sums = kernels::matmul<bf16>(x, w, m, n, tiles);
    store(y, {n, m}, full<f32>({tiles.n, tiles.m}, 0));
    if_(m % 2 == 0, [&] { store(z, {m, n}, sum(sums, 1)); });
    if_(m % 2 != 0, [&] { store(z, {m, n}, -max(sums, Axis(1))); });
  });
  const auto looped = kernel("looped", [=](In<bf16, 2> x, In<bf16, 2> w, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(x.extent(0), tiles.m), cdiv(w.extent(1), tiles.n));
    Var sums = kernels::matmul<bf16>(x, w, m, n, tiles);
    for ([[maybe_unused]] Index i : range(3)) sums = sums * 2.0f;
    store(y, {m, n}, sums);
  });
  const Sizes of{136, 72, 72};
  const Problem<bf16> problem(of);
  const auto y = full_of<f32>(of.n, of.m, 99);
  launch(test_device().stream(), transposed, problem.x, problem.w, y);
  const std::vector<float> got = y.to_vector();
  for (int i = 0; i < of.m; ++i)
    for (int j = 0; j < of.n; ++j) REQUIRE(got[static_cast<std::size_t>(j) * of.m + i] == problem.sum(i, j));
  const auto z = full_of<f32>(3, 2, 99);
  launch(test_device().stream(), halves, problem.x, problem.w, y, z);
  CHECK(has_roles(transposed.graph(), problem.unit_axes()));
  CHECK(has_roles(halves.graph(), problem.unit_axes()));
  CHECK(has_roles(looped.graph(), problem.unit_axes()) == false);
  const auto u = full_of<f32>(of.m, of.n, 99);
  launch(test_device().stream(), looped, problem.x, problem.w, u);
  CHECK(problem.difference(u, [](int, int, double sum) { return 8 * sum; }) == "");
}

}  // namespace test_warp_specialized_matmul
