// Functions: the examples of docs/ops.md are programs of the language, and use only its public part; user-defined
// device functions with several results.
#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/tensors.hpp"
#include "tessera/tessera.hpp"

// Examples name results that nothing uses.
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

namespace test_functions {

using namespace tessera;

TEST_CASE("the examples on the page of ops can be traced", "[language]") {
  const auto examples = kernel("examples", [](In<f32, 2> x, In<f32, 2> table, In<i32, 1> list, List<In<f32, 2>, 2> xs,
                                              Out<f32, 2> y, InOut<f32, 2> total, InOut<i32, 2> bits) {
    Index i = blocks(4);
    Tile a = load(x, {i, 0}, {8, 16}), b = load(table, {i, 0}, {8, 16}), c = transpose(b);
    Tile n = cast<i32>(a);
    Tile rows = load(list, {i}, {8});
    Tile p = a < b;
    Var acc = zeros<f32>({8, 8});
#define HEADING(...)
#define FUNCTION(op, signature, types, shapes, meaning, ...) \
  { __VA_ARGS__ }
#include "opcheck/functions.def"
    store(y, {i, 1}, where(p, a, 0));
    Tile before = load(total, {i, 0}, {8, 8});
    store(total, {i, 0}, before + acc);
  });
  CHECK(examples.graph().regions.size() >= 4);
}

TEST_CASE("each structural op that an author can write is on the page of ops", "[language]") {
  using namespace tessera::internal;
  for (int i = 0; i <= static_cast<int>(Op::print); ++i) {
    const Op op = static_cast<Op>(i);
    if (info(op).group != OpGroup::structural) continue;
    // Not written by authors: parameters, and ops that build regions.
    bool found = op == Op::scalar || op == Op::tensor || op == Op::argument || op == Op::result;
#define HEADING(...)
#define FUNCTION(of, ...) found |= op == Op::of;
#include "opcheck/functions.def"
    CHECK((std::string(name(op)) + (found ? "" : " is missing")) == std::string(name(op)));
  }
}

namespace {

/// Several types and shapes, named and unnamed.
auto compared(TileExpr auto const& one, TileExpr auto const& other) {
  Tile a = one, b = other;
  return std::tuple(a + b, Tile(a - b), sum(a * b, 1), a < b);
}
/// One type.
auto ordered(TileExpr auto const& a, TileExpr auto const& b) {
  return std::array{Tile(minimum(a, b)), Tile(maximum(a, b))};
}
/// Three, from the function for two: a sorting network.
auto ordered(TileExpr auto const& a, TileExpr auto const& b, TileExpr auto const& c) {
  auto [low, high] = ordered(a, b);
  auto [middle, highest] = ordered(high, c);
  auto [lowest, between] = ordered(low, middle);
  return std::array{lowest, between, highest};
}

}  // namespace

TEST_CASE("device functions return several results, as a tuple or as an array", "[cpu]") {
  constexpr int rows = 5, columns = 19;
  const auto k = kernel("several", [](In<i32, 2> x, In<i32, 2> y, Out<i32, 2> together, Out<i32, 2> dots,
                                      Out<i32, 2> in_order, Out<i32, 2> steps) {
    Tile a = load(x, {0, 0}, {rows, columns}), b = load(y, {0, 0}, {rows, columns});
    auto [both, apart, dot, is_less] = compared(a, b * 2);
    store(together, {0, 0}, where(is_less, both, apart * 1000));
    store(dots, {0, 0}, dot);
    auto [first, second, third] = ordered(a, b, 7 - a);
    store(in_order, {0, 0}, concat(0, first, second, third));
    // In a loop, on carried values: two sequences of numbers, sorted by the function.
    Var low = a, high = b;
    for (Index i : range(4)) {
      auto [least, most] = ordered(high - low, low + i);
      low = least;
      high = most;
    }
    const auto all = ordered(low, high);
    store(steps, {0, 0}, concat(0, low, high, all[0], std::get<1>(all)));
  });
  const auto cells = static_cast<std::size_t>(rows * columns);
  std::vector<i32> x(cells), y(cells);
  for (std::size_t i = 0; i < cells; ++i)
    x[i] = static_cast<i32>(i * 37 % 101) - 50, y[i] = static_cast<i32>(i * 53 % 89) - 40;
  const auto fresh = [](int height, int width) {
    return tensor<i32, 2>({height, width}, std::vector<i32>(static_cast<std::size_t>(height * width), 77));
  };
  const auto together = fresh(rows, columns), dots = fresh(rows, 1), in_order = fresh(3 * rows, columns),
             steps = fresh(4 * rows, columns);
  launch(test_device().stream(), k, tensor<i32, 2>({rows, columns}, x), tensor<i32, 2>({rows, columns}, y), together,
         dots, in_order, steps);
  std::vector<i32> sums(rows), one(cells), three(3 * cells), four(4 * cells);
  for (std::size_t i = 0; i < cells; ++i) {
    const i32 a = x[i], b = y[i], twice = 2 * b;
    one[i] = a < twice ? a + twice : (a - twice) * 1000;
    sums[i / columns] += a * twice;
    std::array<i32, 3> order = {a, b, 7 - a};
    std::ranges::sort(order);
    for (std::size_t j = 0; j < 3; ++j) three[j * cells + i] = order[j];
    i32 low = a, high = b;
    for (i32 round = 0; round < 4; ++round) {
      const i32 difference = high - low, next = low + round;
      low = std::min(difference, next), high = std::max(difference, next);
    }
    four[i] = four[2 * cells + i] = low, four[cells + i] = four[3 * cells + i] = high;
  }
  CHECK(together.to_vector() == one);
  CHECK(dots.to_vector() == sums);
  CHECK(in_order.to_vector() == three);
  CHECK(steps.to_vector() == four);
}

}  // namespace test_functions
