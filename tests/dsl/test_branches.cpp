// Branches that yield values, iterations that a condition ends, and values that only a branch needs.
#include <utility>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/tessera.hpp"

namespace test_branches {

using namespace tessera::internal;

TEST_CASE("if_ and else_ leave values in Vars", "[cpu]") {
  const auto k = kernel("ways", [](In<f32, 2> x, In<f32, 2> z, Out<f32, 2> y, InOut<i32, 1> log, Scalar<i32> n) {
    const Tile t = load(x, {0, 0}, {5, 33});
    Var a = t * 1, b = t + 1;
    Var steps = constant<i32>(0);
    for (Index i : range(n)) {
      if_(i % 3 == 0, [&] {
        a += transpose(load(z, {0, 0}, {33, 5}));  // read only in this branch
        const Tile old = load(log, {i}, {1});
        store(log, {i}, old + 100);
      }).else_([&] {
        Var swapped = b;
        if_(i % 3 == 1, [&] { swapped = a, b = sum(a, 1) + b; }).else_([&] { steps += 5; });
        a = swapped * 2;
        steps += i;
      });
      if_(steps > 40, [&] { steps -= 40; });
    }
    store(y, {0, 0}, a + b * 1000);
    store(log, {9}, reshape(steps, {1}));
  });
  for (const int n : {0, 1, 2, 3, 7}) {
    INFO(n << " rounds");
    std::vector<f32> x(5 * 33), z(5 * 33);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<f32>(i % 3), z[i] = static_cast<f32>(i % 2);
    const auto xs = tensor<f32, 2>({5, 33}, x), zs = tensor<f32, 2>({33, 5}, z);
    const auto y = tensor<f32, 2>({5, 33}, std::vector<f32>(5 * 33, -1));
    const auto log = tensor<i32, 1>({10}, numbered<i32>(10));
    launch(test_device().stream(), k, xs, zs, y, log, n);
    std::vector<f32> a = x, b = x;
    for (f32& one : b) one += 1;
    std::vector<i32> marks = numbered<i32>(10);
    int steps = 0;
    for (int i = 0; i < n; ++i) {
      if (i % 3 == 0) {
        for (std::size_t r = 0; r < 5; ++r)
          for (std::size_t c = 0; c < 33; ++c) a[r * 33 + c] += z[c * 5 + r];
        marks[static_cast<std::size_t>(i)] += 100;
      } else {
        std::vector<f32> swapped = b;
        if (i % 3 == 1) {
          swapped = a;
          for (std::size_t r = 0; r < 5; ++r) {
            f32 sum = 0;
            for (std::size_t c = 0; c < 33; ++c) sum += a[r * 33 + c];
            for (std::size_t c = 0; c < 33; ++c) b[r * 33 + c] += sum;
          }
        } else {
          steps += 5;
        }
        for (std::size_t j = 0; j < a.size(); ++j) a[j] = swapped[j] * 2;
        steps += i;
      }
      if (steps > 40) steps -= 40;
    }
    marks[9] = steps;
    for (std::size_t j = 0; j < a.size(); ++j) a[j] += b[j] * 1000;
    CHECK(y.to_vector() == a);
    CHECK(log.to_vector() == marks);
  }
}

TEST_CASE("while_ iterates as long as its condition holds", "[cpu]") {
  const auto k = kernel("collatz", [](In<i32, 1> x, Out<i32, 2> y) {
    Index b = blocks(x.extent(0));
    Var n = item(load(x, {b}, {1}));
    Var rounds = constant<i32>(0), most = constant<i32>(0), inner = constant<i32>(0);
    Var powers = full<i32>({40}, 1), before = zeros<i32>({40});
    while_([&] { return n > 1; },
           [&] {
      if_(n % 2 == 0, [&] { n /= 2; }).else_([&] { n = n * 3 + 1; });
      rounds += 1;
      most = maximum(most, n);
      const Tile next = powers + before;
      before = powers, powers = next;
      Var left = n;
      while_([&] { return left > 9; }, [&] { left /= 10, inner += 1; });
    });
    store(y, {b, 0}, reshape(rounds, {1, 1}));
    store(y, {b, 1}, reshape(most, {1, 1}));
    store(y, {b, 2}, reshape(max(powers, Axis(0)), {1, 1}));
    store(y, {b, 3}, reshape(inner, {1, 1}));
  });
  const std::vector<i32> start = {1, 0, -5, 2, 3, 7, 27, 6};
  const auto x = tensor<i32, 1>({8}, start);
  const auto y = tensor<i32, 2>({8, 4}, std::vector<i32>(32, -1));
  launch(test_device().stream(), k, x, y);
  std::vector<i32> expected;
  for (i32 n : start) {
    i32 rounds = 0, most = 0, inner = 0;
    std::uint32_t power = 1, before = 0;
    while (n > 1) {
      n = n % 2 == 0 ? n / 2 : n * 3 + 1;
      ++rounds, most = std::max(most, n);
      before = std::exchange(power, power + before);
      for (i32 left = n; left > 9; left /= 10) ++inner;
    }
    for (const i32 value : {rounds, most, static_cast<i32>(power), inner}) expected.push_back(value);
  }
  CHECK(y.to_vector() == expected);
}

TEST_CASE("while_ tests a Var that another one replaces", "[cpu]") {
  const auto k = kernel("two_behind", [](Out<i32, 1> y, Scalar<i32> n) {
    Var rounds = constant<i32>(0);
    Var continues = n > 0, next = n > 1;
    while_([&] { return continues; },
           [&] {
      continues = next;
      next = next & (rounds + 2 < n);
      rounds += 1;
    });
    store(y, {0}, reshape(rounds, {1}));
  });
  for (const int n : {0, 1, 2, 5}) {
    const auto y = tensor<i32, 1>({1}, {-1});
    launch(test_device().stream(), k, y, n);
    CHECK(y.to_vector() == std::vector<i32>{n});
  }
}

TEST_CASE("values that only a branch needs are computed in it", "[graph]") {
  const auto k = kernel("inside", [](In<f32, 1> x, In<f32, 1> z, Out<f32, 1> y, Scalar<i32> n) {
    const Tile both = load(x, {0}, {8});
    if_(n > 0, [&] {
      const Tile here = exp(load(z, {0}, {8}));
      for (Index i : range(n)) store(y, {i}, here * both);
    });
    store(y, {9}, both);
  });
  const Graph& graph = k.graph();
  const std::vector<std::vector<Id>> order = schedule(graph);
  const auto home = [&](Op op, int nth) {
    for (RegionId region = 0; region < order.size(); ++region)
      for (Id id : order[region])
        if (graph[id].op == op && nth-- == 0) return graph.regions[region].kind;
    return RegionKind::repeat;
  };
  CHECK(home(Op::load, 0) == RegionKind::kernel);
  CHECK(home(Op::load, 1) == RegionKind::branch);
  CHECK(home(Op::exp, 0) == RegionKind::branch);  // not in the loop, which would
                                                  // compute it in each iteration
  CHECK(home(Op::mul, 0) == RegionKind::branch);
}

}  // namespace test_branches
