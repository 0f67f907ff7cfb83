// Reductions, ops that move elements, and mma, against the fine print of ops.def; and random graphs of all of them,
// with values for which every result is exact, so that fusing, folding or moving ops may not change it.
#include "support/catch.hpp"
#include "support/oracle.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"

namespace test_ops_structural {

using namespace tessera::internal;
using oracle::Array;
using oracle::Extents;
using oracle::Real;
using oracle::Value;
using oracle::Values;

namespace {

constexpr Op reductions[] = {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(name, ...) Op::name,
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
};
constexpr ElementType all_types[] = {
#define TYPE(name, ...) ElementType::name,
#include "tessera/graph/types.def"
};

const Extents shapes[] = {{1},          {7},          {1537},     {3, 5},     {16, 33},
                          {1, 64},      {64, 1},      {77, 130},  {5, 1, 7},  {2, 17, 3},
                          {2, 3, 4, 5}, {1, 9, 1, 3}, {3, 2, 70}, {70, 2, 3}, {2, 2, 2, 2, 3, 2}};

Array ordinary(oracle::Rng& rng, ElementType type, const Extents& shape) {
  if (type == ElementType::pred) return oracle::random_array(rng, type, shape, 0, 1);
  if (!oracle::is_real(type)) return oracle::random_bits_array(rng, type, shape);
  return oracle::random_array(rng, type, shape, -100, 100);
}
/// Few distinct values, NaN and infinities among them.
Array with_ties(oracle::Rng& rng, ElementType type, const Extents& shape) {
  Array a(type, shape);
  const Real choices[] = {-2, -1, 0, 1, 2, oracle::real_nan, oracle::real_inf, -oracle::real_inf};
  const int kind = oracle::between(rng, 0, 2);
  for (Real& x : a.real)
    x = kind == 2 ? choices[5 + oracle::between(rng, 0, 2) % 3] : choices[oracle::between(rng, 0, 5 + 2 * kind)];
  for (i64& x : a.whole) x = oracle::wrapped(oracle::between<i64>(rng, -1, 1), type);
  return a;
}

Value along(Op op, const Value& a, int axis) {
  const std::vector<std::int64_t> attributes =
      is_scan(op) ? std::vector<std::int64_t>{axis, 0} : std::vector<std::int64_t>{axis};
  return oracle::apply(op, op == Op::argmax ? ElementType::i32 : a.type, {a}, attributes);
}
Value permuted(const Value& a, const std::vector<int>& axes) {
  return oracle::apply(Op::permute, a.type, {a}, {axes.begin(), axes.end()});
}
Value stretched(const Value& a, const Extents& shape) { return oracle::apply(Op::broadcast, a.type, {a}, {}, shape); }

Array expected_along(Op op, const Array& a, int axis, std::vector<Real>* bound) {
  if (op == Op::argmax) return oracle::argmax(a, axis);
  if (is_scan(op)) return oracle::scan(op, a, axis, {}, bound);
  return oracle::reduce(op, a, axis, bound);
}
constexpr Op all_along[] = {Op::sum, Op::prod,   Op::max,    Op::min,     Op::max_nan, Op::min_nan, Op::any,
                            Op::all, Op::argmax, Op::cumsum, Op::cumprod, Op::cummax,  Op::cummin};
bool takes(Op op, ElementType type) { return is_reduction(op) ? accepts(op, type) : info(type).computes; }
/// Numbers whose product neither overflows nor underflows, in any order.
Array near_one(oracle::Rng& rng, ElementType type, const Extents& shape) {
  Array a(type, shape);
  for (Real& x : a.real) x = std::array<float, 4>{-1, 1, 1.25f, 0.8125f}[oracle::between<std::size_t>(rng, 0, 3)];
  return a;
}

std::vector<int> random_axes(oracle::Rng& rng, std::size_t rank) {
  std::vector<int> axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<int>(i);
  std::shuffle(axes.begin(), axes.end(), rng);
  return axes;
}

}  // namespace

TEST_CASE("every reduction of the table is tested here", "[cpu]") {
  for (Op op : reductions) CHECK(std::find(std::begin(all_along), std::end(all_along), op) != std::end(all_along));
}

TEST_CASE("reductions, argmax and cumsum along every axis", "[cpu]") {
  Cases cases(1500);
  oracle::Rng rng(21);
  for (ElementType type : {ElementType::f32, ElementType::f64, ElementType::i32, ElementType::i64, ElementType::u32,
                           ElementType::u64, ElementType::pred}) {
    for (Op op : all_along) {
      if (!takes(op, type)) continue;
      for (const Extents& shape : shapes) {
        for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
          if (cases.skip()) continue;
          INFO(name(op) << " of " << name(type) << oracle::text_of(shape) << " along " << axis);
          const bool computes = op == Op::sum || op == Op::cumsum || type == ElementType::pred;
          const bool product = (op == Op::prod || op == Op::cumprod) && oracle::is_real(type);
          for (const Array& a : {product ? near_one(rng, type, shape) : ordinary(rng, type, shape),
                                 product    ? near_one(rng, type, shape)
                                 : computes ? ordinary(rng, type, shape)
                                            : with_ties(rng, type, shape)}) {
            std::vector<Real> bound;
            const Array expected = expected_along(op, a, axis, &bound);
            const Array actual =
                oracle::evaluate({a}, expected, [&](const Values& x) { return along(op, x[0], axis); });
            CHECK(oracle::difference(actual, expected, 0, bound) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("scans in both directions, inclusive or exclusive", "[cpu]") {
  Cases cases(160);
  oracle::Rng rng(27);
  for (ElementType type :
       {ElementType::f32, ElementType::f64, ElementType::i32, ElementType::i64, ElementType::u32, ElementType::u64})
    for (Op op : {Op::cumsum, Op::cumprod, Op::cummax, Op::cummin})
      for (const Extents& shape :
           {Extents{1}, {33}, {1537}, {3, 5}, {16, 33}, {64, 1}, {130, 77}, {2, 17, 3}, {4, 1100}})
        for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
          for (const ScanOptions options : {ScanOptions{.reverse = true}, {.exclusive = true}, {true, true}}) {
            if (cases.skip()) continue;
            INFO(name(op) << " of " << name(type) << oracle::text_of(shape) << " along " << axis
                          << (options.reverse ? ", reverse" : "") << (options.exclusive ? ", exclusive" : ""));
            const bool product = op == Op::cumprod && oracle::is_real(type);
            const Array a = product            ? near_one(rng, type, shape)
                            : op == Op::cumsum ? ordinary(rng, type, shape)
                                               : with_ties(rng, type, shape);
            std::vector<Real> bound;
            const Array expected = oracle::scan(op, a, axis, options, &bound);
            const Array actual = oracle::evaluate({a}, expected, [&](const Values& x) {
              return oracle::apply(op, type, {x[0]}, {axis, options.reverse + 2 * options.exclusive});
            });
            CHECK(oracle::difference(actual, expected, 0, bound) == "");
          }
}

TEST_CASE("scans of tiles of four to six axes, along each axis", "[cpu]") {
  Cases cases(360);
  oracle::Rng rng(41);
  int which = 0;
  for (ElementType type :
       {ElementType::f32, ElementType::f64, ElementType::i32, ElementType::i64, ElementType::u32, ElementType::u64}) {
    ++which;  // each axis with each op in all four ways, in tiles of another type
    for (Op op : {Op::cumsum, Op::cumprod, Op::cummax, Op::cummin})
      for (const Extents& shape : {Extents{2, 3, 4, 5}, {2, 7, 1, 3, 2}, {2, 3, 1, 5, 2, 3}})
        for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
          const int way = which++ % 4;
          if (cases.skip()) continue;
          const ScanOptions options{(way & 1) != 0, (way & 2) != 0};
          INFO(name(op) << " of " << name(type) << oracle::text_of(shape) << " along " << axis
                        << (options.reverse ? ", reverse" : "") << (options.exclusive ? ", exclusive" : ""));
          const bool product = op == Op::cumprod && oracle::is_real(type);
          const Array a = product            ? near_one(rng, type, shape)
                          : op == Op::cumsum ? ordinary(rng, type, shape)
                                             : with_ties(rng, type, shape);
          std::vector<Real> bound;
          const Array expected = oracle::scan(op, a, axis, options, &bound);
          const Array actual = oracle::evaluate({a}, expected, [&](const Values& x) {
            return oracle::apply(op, type, {x[0]}, {axis, way});
          });
          CHECK(oracle::difference(actual, expected, 0, bound) == "");
        }
  }
}

TEST_CASE("reductions of NaN, of infinities, and of nothing", "[cpu]") {
  Cases cases(500);
  const Real nan = oracle::real_nan, inf = oracle::real_inf;
  for (int length : {1, 2, 8, 33, 1537}) {
    for (const std::array<Real, 2>& pair : {std::array{nan, nan},
                                            {inf, inf},
                                            {-inf, -inf},
                                            {nan, -inf},
                                            {nan, inf},
                                            {-inf, nan},
                                            {inf, nan},
                                            {nan, 3.0L},
                                            {3.0L, nan},
                                            {-3.0L, nan}}) {
      Array a(ElementType::f32, {2, length});
      for (std::size_t i = 0; i < a.size(); ++i) a.real[i] = pair[i % length == 0 ? 0 : 1];
      for (Op op : {Op::max, Op::min, Op::max_nan, Op::min_nan, Op::argmax}) {
        if (cases.skip()) continue;
        INFO(name(op) << " of " << length << ": " << pair[0] << ", then " << pair[1]);
        for (int axis : {0, 1}) {
          const Array expected = expected_along(op, a, axis, nullptr);
          CHECK(oracle::difference(
                    oracle::evaluate({a}, expected, [&](const Values& x) { return along(op, x[0], axis); }),
                    expected) == "");
        }
      }
    }
  }
  SECTION("sums of infinities and NaN") {
    const Array a = oracle::reals({4, 3}, {inf, 1, 2, inf, -inf, 0, nan, 1, 1, -inf, -inf, 5});
    for (int axis : {0, 1}) {
      for (Op op : {Op::sum, Op::cumsum}) {
        const Array expected = expected_along(op, a, axis, nullptr);
        CHECK(oracle::difference(
                  oracle::evaluate({a}, expected, [&](const Values& x) { return along(op, x[0], axis); }), expected) ==
              "");
      }
    }
  }
}

TEST_CASE("argmax returns the lowest index among equals, wherever they are", "[cpu]") {
  Cases cases(90);
  for (int length : {2, 7, 16, 33, 100, 1537}) {
    for (int first : {0, 1, length / 2, length - 2}) {
      for (int second : {first + 1, length - 1}) {
        if (second >= length || cases.skip()) continue;
        Array a(ElementType::f32, {length});
        for (Real& x : a.real) x = -5;
        a.real[first] = a.real[second] = 4;
        Array b(ElementType::i32, {length});
        for (std::size_t i = 0; i < b.size(); ++i) b.whole[i] = static_cast<i64>(a.real[i]);
        INFO("of " << length << " at " << first << " and " << second);
        const Array like(ElementType::i32, {1});
        CHECK(oracle::evaluate({a}, like, [](const Values& x) { return along(Op::argmax, x[0], 0); }).whole[0] ==
              first);
        CHECK(oracle::evaluate({b}, like, [](const Values& x) { return along(Op::argmax, x[0], 0); }).whole[0] ==
              first);
      }
    }
  }
}

TEST_CASE("sums of long rows are as accurate as f32 sums must be", "[cpu]") {
  Cases cases(20);
  oracle::Rng rng(22);
  for (const Extents& shape : {Extents{5000}, {3, 5000}, {5000, 3}, {2, 5000, 2}, {100'003}}) {
    int axis = 0;
    while (shape[axis] < 5000) ++axis;
    for (Op op : {Op::sum, Op::cumsum}) {
      for (double low : {0.0, -1.0}) {
        if (cases.skip()) continue;
        INFO(name(op) << " of " << oracle::text_of(shape) << " from " << low);
        const Array a = oracle::random_array(rng, ElementType::f32, shape, low, 1);
        std::vector<Real> bound;
        const Array expected = expected_along(op, a, axis, &bound);
        const Array actual = oracle::evaluate({a}, expected, [&](const Values& x) { return along(op, x[0], axis); });
        CHECK(oracle::difference(actual, expected, 0, bound) == "");
      }
    }
  }
  SECTION("integers wrap") {
    const Array a = oracle::random_array(rng, ElementType::i32, {2, 5000}, 1e9, 2147483647.0);
    for (Op op : {Op::sum, Op::cumsum}) {
      const Array expected = expected_along(op, a, 1, nullptr);
      CHECK(oracle::difference(oracle::evaluate({a}, expected, [&](const Values& x) { return along(op, x[0], 1); }),
                               expected) == "");
    }
  }
}

TEST_CASE("reductions of tiles that are transposed, broadcast, joined or computed", "[cpu]") {
  Cases cases(1500);
  oracle::Rng rng(23);
  for (ElementType type :
       {ElementType::f32, ElementType::f64, ElementType::i32, ElementType::i64, ElementType::u32, ElementType::u64}) {
    for (Op op : all_along) {
      if (!takes(op, type)) continue;
      for (const Extents& shape : {Extents{3, 5}, {16, 33}, {2, 17, 3}, {2, 3, 4, 5}, {40, 2}}) {
        const int rank = static_cast<int>(shape.size());
        const std::vector<int> axes = random_axes(rng, shape.size());
        Extents wide = shape;
        wide.insert(wide.begin(), 3);
        const Array a = ordinary(rng, type, shape), half = oracle::unary(Op::neg, a);
        const Array forms[] = {oracle::permute(a, axes), oracle::broadcast(a, wide), oracle::concat({a, a}, rank - 1),
                               half, oracle::broadcast(oracle::reduce(Op::max, a, 0), shape)};
        for (int form = 0; form < 5; ++form) {
          for (int axis = 0; axis < forms[form].rank(); ++axis) {
            if (cases.skip()) continue;
            INFO(name(op) << " of form " << form << " of " << name(type) << oracle::text_of(shape) << " along "
                          << axis);
            std::vector<Real> bound;
            const Array expected = expected_along(op, forms[form], axis, &bound);
            const Array actual = oracle::evaluate({a}, expected, [&](const Values& x) {
              const Value& t = x[0];
              return along(op,
                           form == 0   ? permuted(t, axes)
                           : form == 1 ? stretched(t, wide)
                           : form == 2 ? oracle::apply(Op::concat, type, {t, t}, {rank - 1})
                           : form == 3 ? oracle::apply_unary(Op::neg, t)
                                       : stretched(along(Op::max, t, 0), shape),
                           axis);
            });
            CHECK(oracle::difference(actual, expected, 0, bound) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("reductions of the language: along one axis, several or all", "[cpu]") {
  const auto k = kernel("several",
                        [](In<f32, 3> x, Out<f32, 3> a, Out<f32, 3> b, Out<f32, 3> c, Out<f32, 3> d, Out<i32, 3> e) {
    const Tile t = load(x, {0, 0, 0}, {5, 3, 7});
    store(a, {0, 0, 0}, sum(t, {2, 0}) + max(t, {0, -1}) - min(t, {0}));
    store(b, {0, 0, 0}, concat(2, sum(t), max(t), mean(t), prod(sum(t * 0.0f + 1) / 105)));
    store(c, {0, 0, 0}, mean(t, axis(0)) + max(t, axis(0)) + sum(t, 0));
    store(d, {0, 0, 0}, mean(t, {0, 2}));
    store(e, {0, 0, 0}, cast<i32>(any(t > 48, {0, 2})) + 2 * cast<i32>(all(t > -51)) + 4 * cast<i32>(any(t < -51, -1)));
  });
  oracle::Rng rng(25);
  const Array t = oracle::cast(oracle::random_array(rng, ElementType::i32, {5, 3, 7}, -50, 50), ElementType::f32);
  const Device& device = test_device();
  Tensor<f32, 3> x(device, {5, 3, 7}), a(device, {1, 3, 7}), b(device, {1, 1, 4}), c(device, {1, 3, 7}),
      d(device, {1, 3, 1});
  Tensor<i32, 3> e(device, {5, 3, 1});
  x.copy_from(std::vector<float>(t.real.begin(), t.real.end()));
  launch(device.stream(), k, x, a, b, c, d, e);
  const auto along = [&](Op op, std::vector<int> axes) {
    Array result = t;
    for (const int axis : axes) result = oracle::reduce(op, result, axis);
    return result;
  };
  const auto near = [](float actual, Real expected) { return std::abs(actual - expected) <= 1e-4L; };
  const Array sums = along(Op::sum, {0, 2}), most = along(Op::max, {0, 2}), least = along(Op::min, {0}),
              down = along(Op::sum, {0}), largest = along(Op::max, {0});
  const auto of_a = a.to_vector(), of_b = b.to_vector(), of_c = c.to_vector(), of_d = d.to_vector();
  for (std::size_t i = 0; i < 21; ++i) CHECK(near(of_a[i], sums.real[i / 7] + most.real[i / 7] - least.real[i]));
  const Array whole = along(Op::sum, {0, 1, 2});
  CHECK(near(of_b[0], whole.real[0]));
  CHECK(near(of_b[1], along(Op::max, {0, 1, 2}).real[0]));
  CHECK(near(of_b[2], whole.real[0] / 105));
  CHECK(near(of_b[3], 1));
  for (std::size_t i = 0; i < 21; ++i) CHECK(near(of_c[i], down.real[i] / 5 + largest.real[i] + down.real[i]));
  for (std::size_t i = 0; i < 3; ++i) CHECK(near(of_d[i], sums.real[i] / 35));
  const auto of_e = e.to_vector();
  for (std::size_t i = 0; i < 15; ++i) CHECK(of_e[i] == (most.real[i % 3] > 48 ? 1 : 0) + 2);
  const auto twice = [](In<f32, 2> in, Out<f32, 2> out) { store(out, {0, 0}, sum(load(in, {0, 0}, {4, 4}), {1, -1})); };
  CHECK(error_of([&] { (void)kernel("twice", twice); }).find("sum: axis 1 is named twice; name each axis once") !=
        std::string::npos);
}

TEST_CASE("reductions by an author's function: means and variances at once", "[cpu]") {
  for (const std::array<int, 3> is : {std::array{4, 70, 1}, {33, 5, 0}, {1, 1, 1}, {2, 64, 1}}) {
    const int rows = is[0], columns = is[1], axis = is[2], lines = is[1 - axis], count = is[axis];
    CAPTURE(rows, columns, axis);
    const auto k = kernel("welford", [=](In<f32, 2> x, Out<f32, 2> y) {
      const Tile t = load(x, {0, 0}, {rows, columns});
      const auto together = [](const auto& a, const auto& b) {  // Chan, Golub and LeVeque, 1979
        const auto& [mean_a, squares_a, count_a] = a;
        const auto& [mean_b, squares_b, count_b] = b;
        const Tile whole = count_a + count_b, delta = mean_b - mean_a, share = count_b / maximum(whole, 1);
        return std::tuple(mean_a + delta * share, squares_a + squares_b + delta * delta * count_a * share, whole);
      };
      auto [middle, squares, counted] = reduce(std::tuple(t, t * 0, t * 0 + 1), axis, together, {0, 0, 0});
      store(y, {0, 0}, concat(1 - axis, middle, squares / counted, counted));
    });
    oracle::Rng rng(28);
    const Array a = oracle::random_array(rng, ElementType::f32, {rows, columns}, 90, 110);
    const Device& device = test_device();
    Tensor<f32, 2> x(device, {rows, columns});
    Tensor<f32, 2> y(device, {axis ? lines * 3 : 1, axis ? 1 : lines * 3});
    x.copy_from(std::vector<float>(a.real.begin(), a.real.end()));
    launch(device.stream(), k, x, y);
    const auto got = y.to_vector();
    for (int line = 0; line < lines; ++line) {
      const auto at = [&](int i) { return a.real[axis ? line * columns + i : i * columns + line]; };
      Real mean = 0, squares = 0;
      for (int i = 0; i < count; ++i) mean += at(i) / count;
      for (int i = 0; i < count; ++i) squares += (at(i) - mean) * (at(i) - mean) / count;
      CHECK(std::abs(got[line] - mean) <= 1e-4L);
      CHECK(std::abs(got[lines + line] - squares) <= 1e-3L);
      CHECK(got[2 * lines + line] == static_cast<float>(count));
    }
  }
}

TEST_CASE("scans and reductions by a function that is not commutative", "[cpu]") {
  // x -> m x + b, composed in order.
  const auto k = kernel("recurrence", [](In<i32, 2> m, In<i32, 2> b, Out<i32, 2> y, Out<i32, 2> z) {
    const Tile ms = load(m, {0, 0}, {3, 37}), bs = load(b, {0, 0}, {3, 37});
    const auto then = [](const auto& first, const auto& second) {
      const auto& [m1, b1] = first;
      const auto& [m2, b2] = second;
      return std::tuple(m1 * m2, b1 * m2 + b2);
    };
    const auto all = [&](int axis, ScanOptions options) {
      auto [product, sum] = scan(std::tuple(ms, bs), axis, then, {1, 0}, options);
      return sum + product;  // the composition applied to 1
    };
    store(y, {0, 0}, concat(0, all(1, {}), all(1, {.exclusive = true}), all(1, {true, false}), all(0, {true, true})));
    auto [product, sum] = reduce(std::tuple(ms, bs), 1, then, {1, 0});
    const Tile digits = scan(
        bs, -1, [](const auto& x, const auto& y) { return maximum(x, y); }, -100);
    store(z, {0, 0},
          concat(1, sum + product,
                 reduce(
                     digits, 1, [](auto x, auto y) { return minimum(x, y); }, 100)));
  });
  oracle::Rng rng(29);
  const Array ms = oracle::random_array(rng, ElementType::i32, {3, 37}, -3, 3),
              bs = oracle::random_array(rng, ElementType::i32, {3, 37}, -50, 50);
  const Device& device = test_device();
  Tensor<i32, 2> m(device, {3, 37}), b(device, {3, 37}), y(device, {12, 37}), z(device, {3, 2});
  m.copy_from(std::vector<i32>(ms.whole.begin(), ms.whole.end()));
  b.copy_from(std::vector<i32>(bs.whole.begin(), bs.whole.end()));
  launch(device.stream(), k, m, b, y, z);
  const auto got = y.to_vector(), whole = z.to_vector();
  const auto step = [&](i64 x, int row, int column) {
    return oracle::wrapped(x * ms.whole[row * 37 + column] + bs.whole[row * 37 + column], ElementType::i32);
  };
  for (int row = 0; row < 3; ++row) {
    i64 up = 1, down = 1;
    for (int i = 0; i < 37; ++i) {
      CHECK(got[(3 + row) * 37 + i] == up);
      CHECK(got[row * 37 + i] == (up = step(up, row, i)));
      CHECK(got[(6 + row) * 37 + 36 - i] == (down = step(down, row, 36 - i)));
      i64 behind = 1;
      for (int other = 2; other > row; --other) behind = step(behind, other, i);
      CHECK(got[(9 + row) * 37 + i] == behind);
    }
    CHECK(whole[row * 2] == up);
    CHECK(whole[row * 2 + 1] == bs.whole[row * 37]);
  }
  const auto shrinks = [](In<f32, 2> in, Out<f32, 2> out) {
    const Tile t = load(in, {0, 0}, {4, 4});
    store(out, {0, 0},
          reduce(
              t, 1, [](const auto& x, const auto& y) { return sum(x + y, 1); }, 0));
  };
  CHECK(error_of([&] { (void)kernel("shrinks", shrinks); })
            .find("reduce: the function returns [4,1] for [4,2]; it must combine "
                  "element by element") != std::string::npos);
  const auto apart = [](In<f32, 2> in, Out<f32, 2> out) {
    const Tile t = load(in, {0, 0}, {4, 4}), u = load(in, {0, 0}, {4, 1});
    auto [p, q] = scan(std::tuple(t, u), 1, [](const auto& x, const auto&) { return x; }, {0, 0});
    store(out, {0, 0}, p + q);
  };
  CHECK(error_of([&] {
          (void)kernel("apart", apart);
        }).find("scan: tiles [4,4] and [4,1]; broadcast them to one shape") != std::string::npos);
}

namespace {

/// Scans, in both directions, and reductions of tiles of T by two functions that are not commutative.
template <class T>
void check_functions() {
  constexpr int rows = 3, columns = 13;
  constexpr ElementType type = element_type<T>;
  INFO("of " << name(type));
  // The last value that is not 0, of any type.
  const auto last = [](const auto& before, const auto& behind) {
    if constexpr (info(type).computes)
      return where(behind != 0, behind, before);
    else
      return where(cast<f32>(behind) != 0, behind, before);
  };
  const auto k = kernel("last", [=](In<T, 2> x, Out<T, 2> y, Out<T, 2> z, Out<T, 2> w) {
    const Tile t = load(x, {0, 0}, {rows, columns});
    store(y, {0, 0},
          concat(0, scan(t, 1, last, 0), scan(t, 1, last, 0, {.reverse = true}),
                 scan(t, 0, last, 0, {.exclusive = true}), scan(t, 1, last, 0, {true, true})));
    store(z, {0, 0}, reduce(t, 1, last, 0));
    store(w, {0, 0}, reduce(t, 0, last, 0));
  });
  std::vector<T> values;
  for (int i = 0; i < rows * columns; ++i) values.push_back(stored<T>(i * 7 % 11 < 6 ? 0 : i % 19 + 1));
  const auto x = tensor<T, 2>({rows, columns}, values);
  const auto y = tensor<T, 2>({4 * rows, columns}, std::vector<T>(4 * rows * columns, stored<T>(77)));
  const auto z = tensor<T, 2>({rows, 1}, std::vector<T>(rows, stored<T>(77)));
  const auto w = tensor<T, 2>({1, columns}, std::vector<T>(columns, stored<T>(77)));
  launch(test_device().stream(), k, x, y, z, w);
  const auto numbers = [](const auto& of) {
    std::vector<double> all;
    for (const T& one : of)
      if constexpr (std::is_arithmetic_v<T>)
        all.push_back(static_cast<double>(one));
      else
        all.push_back(static_cast<float>(one));
    return all;
  };
  const std::vector<double> given = numbers(values);
  // All elements before the position (or after it, starting with the nearest), and the element itself if inclusive.
  const auto found = [&](int row, int column, int by_row, int by_column, bool itself) {
    if (!itself) row += by_row, column += by_column;
    for (; row >= 0 && row < rows && column >= 0 && column < columns; row += by_row, column += by_column)
      if (const double one = given[static_cast<std::size_t>(row * columns + column)]; one != 0) return one;
    return 0.0;
  };
  std::vector<double> scans, by_row, by_column;
  for (const int part : {0, 1, 2, 3})
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        scans.push_back(found(i, j, part == 2 ? -1 : 0, part == 2 ? 0 : part == 0 ? -1 : 1, part < 2));
  for (int i = 0; i < rows; ++i) by_row.push_back(found(i, columns - 1, 0, -1, true));
  for (int j = 0; j < columns; ++j) by_column.push_back(found(rows - 1, j, -1, 0, true));
  CHECK(numbers(y.to_vector()) == scans);
  CHECK(numbers(z.to_vector()) == by_row);
  CHECK(numbers(w.to_vector()) == by_column);
}

/// x -> m x + b, composed in order, with numbers that f32 or 32 bits do not hold, or that wrap.
template <class T>
void check_recurrence() {
  constexpr int rows = 3, columns = 13;
  INFO("of " << name(element_type<T>));
  const auto k = kernel("recurrence", [=](In<T, 2> m, In<T, 2> b, Out<T, 2> y, Out<T, 2> z) {
    const Tile ms = load(m, {0, 0}, {rows, columns}), bs = load(b, {0, 0}, {rows, columns});
    const auto then = [](const auto& first, const auto& second) {
      const auto& [m1, b1] = first;
      const auto& [m2, b2] = second;
      return std::tuple(m1 * m2, b1 * m2 + b2);
    };
    const auto all = [&](int axis, ScanOptions options) {
      auto [product, sum] = scan(std::tuple(ms, bs), axis, then, {1, 0}, options);
      return sum + product * 3;  // the composition applied to 3
    };
    store(y, {0, 0}, concat(0, all(1, {}), all(1, {true, false}), all(0, {.exclusive = true})));
    auto [product, sum] = reduce(std::tuple(ms, bs), 1, then, {1, 0});
    store(z, {0, 0}, sum + product * 3);
  });
  std::vector<T> ms, bs;
  for (int i = 0; i < rows * columns; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      ms.push_back(i % 5 == 0 ? T(2) : T(i % 3 - 1)), bs.push_back(T(i * 1000003) * 4096 + 1);  // exact, below 2^53
    else
      ms.push_back(static_cast<T>(i * 2654435761u + 3)), bs.push_back(static_cast<T>(i * 0x9E3779B97F4A7C15u));
  }
  const auto y = tensor<T, 2>({3 * rows, columns}, std::vector<T>(3 * rows * columns, T(77)));
  const auto z = tensor<T, 2>({rows, 1}, std::vector<T>(rows, T(77)));
  launch(test_device().stream(), k, tensor<T, 2>({rows, columns}, ms), tensor<T, 2>({rows, columns}, bs), y, z);
  const auto step = [&](T x, int row, int column) {
    const auto at = static_cast<std::size_t>(row * columns + column);
    if constexpr (std::is_floating_point_v<T>) {
      return x * ms[at] + bs[at];
    } else {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(x) * static_cast<U>(ms[at]) + static_cast<U>(bs[at]));
    }
  };
  std::vector<T> scans(3 * rows * columns), whole;
  for (int row = 0; row < rows; ++row) {
    T up = 3, down = 3;
    for (int i = 0; i < columns; ++i) {
      up = step(up, row, i), down = step(down, row, columns - 1 - i);
      scans[static_cast<std::size_t>(row * columns + i)] = up;
      scans[static_cast<std::size_t>((rows + row) * columns + columns - 1 - i)] = down;
      T before = 3;
      for (int other = 0; other < row; ++other) before = step(before, other, i);
      scans[static_cast<std::size_t>((2 * rows + row) * columns + i)] = before;
    }
    whole.push_back(up);
  }
  CHECK(y.to_vector() == scans);
  CHECK(z.to_vector() == whole);
}

}  // namespace

TEST_CASE("scans and reductions by an author's function of any type", "[cpu]") {
  Cases cases(12);
  const auto chosen = [&](void (*check)()) {
    if (!cases.skip()) check();
  };
  chosen(check_functions<f16>);
  chosen(check_functions<f64>);
  chosen(check_functions<i64>);
  chosen(check_functions<u32>);
  chosen(check_functions<bf16>);
  chosen(check_functions<f8e4m3>);
  chosen(check_functions<i8>);
  chosen(check_functions<u16>);
  chosen(check_recurrence<f64>);
  chosen(check_recurrence<i64>);
  chosen(check_recurrence<u32>);
  chosen(check_recurrence<u64>);
}

TEST_CASE("reductions of the language: the largest or smallest with its index", "[cpu]") {
  const auto check = []<class T>(T, const Array& a, int axis) {
    const auto k = kernel("indexed", [=](In<T, 2> x, Out<T, 2> value, Out<i32, 2> index) {
      const Tile t = load(x, {0, 0}, {a.shape[0], a.shape[1]});
      auto [largest, where_largest] = max_with_index(t, axis);
      auto [smallest, where_smallest] = min_with_index(t, axis);
      store(value, {0, 0}, concat(1 - axis, largest, smallest));
      store(index, {0, 0}, concat(1 - axis, where_largest, where_smallest, argmin(t, axis)));
    });
    const int n = a.shape[1 - axis];
    const auto shape = [&](int times) {
      return axis == 1 ? std::array<std::int64_t, 2>{n * times, 1} : std::array<std::int64_t, 2>{1, n * times};
    };
    const Device& device = test_device();
    Tensor<T, 2> x(device, {a.shape[0], a.shape[1]}), value(device, shape(2));
    Tensor<i32, 2> index(device, shape(3));
    std::vector<T> values(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) values[i] = oracle::is_real(a.type) ? T(a.real[i]) : T(a.whole[i]);
    x.copy_from(values);
    launch(device.stream(), k, x, value, index);
    Array transposed = a;  // its largest elements are the smallest of a
    for (Real& r : transposed.real) r = -r;
    for (i64& w : transposed.whole) w = -w - 1;
    const Array high = oracle::reduce(Op::max, a, axis), low = oracle::reduce(Op::min, a, axis);
    const Array at_high = oracle::argmax(a, axis), at_low = oracle::argmax(transposed, axis);
    const auto got = value.to_vector();
    const auto at = index.to_vector();
    for (int i = 0; i < n; ++i) {
      CHECK(Real(got[i]) == high.as_real(i));
      CHECK(Real(got[n + i]) == low.as_real(i));
      CHECK(at[i] == at_high.whole[i]);
      CHECK(at[n + i] == at_low.whole[i]);
      CHECK(at[2 * n + i] == at_low.whole[i]);
    }
  };
  oracle::Rng rng(26);
  const Extents shape{6, 70};
  for (const int axis : {0, 1}) {
    check(f32{}, with_ties(rng, ElementType::f32, shape), axis);
    check(f32{}, ordinary(rng, ElementType::f32, shape), axis);
    check(f64{}, with_ties(rng, ElementType::f64, shape), axis);
    check(i32{}, with_ties(rng, ElementType::i32, shape), axis);
    check(i64{}, ordinary(rng, ElementType::i64, shape), axis);
  }
  Array none(ElementType::f32, shape);
  for (Real& x : none.real) x = oracle::real_nan;
  check(f32{}, none, 1);
}

TEST_CASE("the language's reductions take negative axes and strided views", "[cpu]") {
  const auto k = kernel("axes", [](In<f32, 3> x, Out<f32, 3> a, Out<i32, 3> b, Out<f32, 3> c, Out<f32, 3> d) {
    const Tile t = load(x.permute({2, 0, 1}), {0, 0, 0}, {5, 3, 7});
    store(a, {0, 0, 0}, sum(t, -1));
    store(b, {0, 0, 0}, argmax(t, -3));
    store(c, {0, 0, 0}, cumsum(t, -2, {.reverse = true}) + 0 * cummax(t, 0, {.exclusive = true}));
    store(d, {0, 0, 0}, max(t, 1) - min(t, -2) + max_nan(t, -2) - min_nan(t, 1));
  });
  oracle::Rng rng(24);
  const Array source = oracle::random_array(rng, ElementType::i32, {3, 7, 5}, -50, 50),
              t = oracle::permute(oracle::cast(source, ElementType::f32), {2, 0, 1});
  const Device& device = test_device();
  Tensor<f32, 3> x(device, {3, 7, 5}), a(device, {5, 3, 1}), c(device, {5, 3, 7}), d(device, {5, 1, 7});
  Tensor<i32, 3> b(device, {1, 3, 7});
  x.copy_from(std::vector<float>(source.whole.begin(), source.whole.end()));
  launch(device.stream(), k, x, a, b, c, d);
  const auto same = [](const auto& tensor, const Array& expected) {
    const auto values = tensor.to_vector();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      wrong += Real(values[i]) != expected.as_real(i) && !std::isnan(expected.as_real(i));
    return wrong == 0;
  };
  CHECK(same(a, oracle::reduce(Op::sum, t, 2)));
  CHECK(same(b, oracle::argmax(t, 0)));
  Array of_c = oracle::scan(Op::cumsum, t, 1, {.reverse = true});
  for (std::size_t i = 0; i < 21; ++i) of_c.real[i] = oracle::real_nan;  // 0 times the maximum of nothing
  CHECK(same(c, of_c));
  const Array span = oracle::binary(Op::sub, oracle::reduce(Op::max, t, 1), oracle::reduce(Op::min, t, 1));
  CHECK(same(d, oracle::binary(Op::add, span, span)));
  CHECK(error_of([&] {
          (void)kernel("bad", [](In<f32, 1> in, Out<f32, 1> out) { store(out, {0}, sum(load(in, {0}, {4}), 1)); });
        }) != "(no error)");
  CHECK(error_of([&] {
          (void)kernel("bad", [](In<f32, 1> in, Out<f32, 1> out) { store(out, {0}, sum(load(in, {0}, {4}), -2)); });
        }) != "(no error)");
}

TEST_CASE("ops that move elements, of every element type", "[cpu]") {
  Cases cases(2500);
  oracle::Rng rng(25);
  for (ElementType type : all_types) {
    for (const Extents& shape : shapes) {
      INFO(name(type) << oracle::text_of(shape));
      const int rank = static_cast<int>(shape.size());
      const Array a = ordinary(rng, type, shape), b = ordinary(rng, type, shape);
      const auto check = [&](const Array& expected, const std::function<Value(const Value&)>& body) {
        if (cases.skip()) return;
        CHECK(oracle::difference(oracle::evaluate({a}, expected, [&](const Values& x) { return body(x[0]); }),
                                 expected) == "");
      };
      const std::vector<int> axes = random_axes(rng, shape.size()), again = random_axes(rng, shape.size());
      check(oracle::permute(a, axes), [&](const Value& x) { return permuted(x, axes); });
      check(oracle::permute(oracle::permute(a, axes), again),
            [&](const Value& x) { return permuted(permuted(x, axes), again); });
      const Extents flat{static_cast<int>(a.size())};
      check(oracle::reshape(a, flat), [&](const Value& x) { return oracle::apply_reshape(x, flat); });
      check(oracle::reshape(oracle::permute(a, axes), flat),
            [&](const Value& x) { return oracle::apply_reshape(permuted(x, axes), flat); });
      Extents with_ones = shape;
      if (rank < 5) with_ones.insert(with_ones.begin() + oracle::between(rng, 0, rank), 1);
      check(oracle::reshape(a, with_ones), [&](const Value& x) { return oracle::apply_reshape(x, with_ones); });
      Extents wide = with_ones;
      for (int& extent : wide)
        if (extent == 1) extent = oracle::between(rng, 1, 4);
      if (wide.size() < 6) wide.insert(wide.begin(), 2);
      check(oracle::broadcast(oracle::reshape(a, with_ones), wide),
            [&](const Value& x) { return stretched(oracle::apply_reshape(x, with_ones), wide); });
      const std::vector<int> turn = random_axes(rng, wide.size());
      check(oracle::permute(oracle::broadcast(oracle::reshape(a, with_ones), wide), turn),
            [&](const Value& x) { return permuted(stretched(oracle::apply_reshape(x, with_ones), wide), turn); });
      for (int axis = 0; axis < rank; ++axis) {
        Extents other = shape;
        other[axis] = oracle::between(rng, 1, 9);
        const Array c = ordinary(rng, type, other);
        for (const std::vector<int>& order : {std::vector{0, 1}, {2, 0}, {2, 1, 0}, {0, 2, 2, 1}}) {
          if (cases.skip()) continue;
          INFO("concat along " << axis);
          const Array parts[] = {a, b, c};
          std::vector<Array> chosen;
          for (int i : order) chosen.push_back(parts[i]);
          const Array expected = oracle::concat(chosen, axis);
          CHECK(oracle::difference(oracle::evaluate(
                                       {a, b, c}, expected,
                                       [&](const Values& x) {
            Values in;
            for (int i : order) in.push_back(x[i]);
            return oracle::apply(Op::concat, type, in, {axis});
                                       }),
                                   expected) == "");
        }
      }
    }
  }
}

TEST_CASE("constant tiles: full, zeros, iota, constants", "[cpu]") {
  Cases cases(400);
  oracle::Rng rng(26);
  for (const Extents& shape : shapes) {
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      if (cases.skip()) continue;
      INFO("iota " << oracle::text_of(shape) << " along " << axis);
      const Array expected = oracle::iota(shape, axis);
      const auto make = [&](const Values&) { return oracle::apply(Op::iota, ElementType::i32, {}, {axis}, shape); };
      CHECK(oracle::difference(oracle::evaluate({}, expected, make), expected) == "");
      // Used in arithmetic, transposed, reduced.
      const Array square = oracle::binary(Op::mul, expected, expected);
      CHECK(oracle::difference(
                oracle::evaluate({}, square,
                                 [&](const Values& x) { return oracle::apply_binary(Op::mul, make(x), make(x)); }),
                square) == "");
      const Array total = oracle::reduce(Op::sum, expected, axis);
      CHECK(oracle::difference(
                oracle::evaluate({}, total, [&](const Values& x) { return along(Op::sum, make(x), axis); }), total) ==
            "");
      const std::vector<int> axes = random_axes(rng, shape.size());
      const Array transposed = oracle::permute(expected, axes);
      CHECK(
          oracle::difference(oracle::evaluate({}, transposed, [&](const Values& x) { return permuted(make(x), axes); }),
                             transposed) == "");
    }
    for (ElementType type : all_types) {
      if (cases.skip()) continue;
      const Array expected = oracle::filled(type, shape, [](std::size_t) { return 1; });
      CHECK(oracle::difference(
                oracle::evaluate({}, expected, [&](const Values&) { return oracle::literal(type, 1, shape); }),
                expected) == "");
    }
    for (Op op : all_along) {
      if (cases.skip() || !accepts(op, ElementType::f32)) continue;
      const Array three = oracle::filled(ElementType::f32, shape, [](std::size_t) { return -3; });
      std::vector<Real> bound;
      const Array expected = expected_along(op, three, 0, &bound);
      INFO(name(op) << " of a constant " << oracle::text_of(shape));
      CHECK(oracle::difference(
                oracle::evaluate(
                    {}, expected,
                    [&](const Values&) { return along(op, oracle::literal(ElementType::f32, -3, shape), 0); }),
                expected, 0, bound) == "");
    }
  }
}

TEST_CASE("the language's ops that move elements", "[cpu]") {
  const auto k = kernel("moves",
                        [](In<i32, 2> x, Out<i32, 3> a, Out<i32, 2> b, Out<i32, 1> c, Out<i32, 2> d, Out<i32, 2> e) {
    const Tile t = load(x, {0, 0}, {3, 4});
    store(a, {0, 0, 0}, permute(reshape(t, {2, 3, 2}), {-1, 0, 1}));
    store(b, {0, 0}, transpose(t));
    store(c, {0}, broadcast(item(sum(sum(t, 0), 1)) + constant<i32>(5), {3}));
    store(d, {0, 0}, concat(-1, t, full<i32>({3, 1}, 9), t));
    store(e, {0, 0}, concat(0, iota({1, 4}, -1), zeros<i32>({2, 4}), broadcast(item(load(x, {1, 2}, {1, 1})), {1, 4})));
  });
  const Device& device = test_device();
  Tensor<i32, 2> x(device, {3, 4}), b(device, {4, 3}), d(device, {3, 9}), e(device, {4, 4});
  Tensor<i32, 3> a(device, {2, 2, 3});
  Tensor<i32, 1> c(device, {3});
  x.copy_from(std::vector<i32>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
  launch(device.stream(), k, x, a, b, c, d, e);
  CHECK(a.to_vector() == std::vector<i32>{0, 2, 10, 12, 20, 22, 1, 3, 11, 13, 21, 23});
  CHECK(b.to_vector() == std::vector<i32>{0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23});
  CHECK(c.to_vector() == std::vector<i32>{143, 143, 143});
  CHECK(d.to_vector() == std::vector<i32>{0,  1,  2,  3,  9,  0,  1,  2,  3, 10, 11, 12, 13, 9,
                                          10, 11, 12, 13, 20, 21, 22, 23, 9, 20, 21, 22, 23});
  CHECK(e.to_vector() == std::vector<i32>{0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 12, 12, 12, 12});
}

// mma
// --------------------------------------------------------------------------------------------------------------------

TEST_CASE("mma of every operand type", "[cpu]") {
  Cases cases(720);
  oracle::Rng rng(27);
  struct Sizes {
    int m, k, n;
  };
  for (ElementType type : all_types) {
    if (!info(type).multiplies) continue;
    const ElementType sums = sum_type(type);
    for (const Sizes& s : {Sizes{1, 1, 1}, Sizes{1, 64, 33}, Sizes{77, 53, 130}, Sizes{16, 16, 16}, Sizes{33, 64, 1},
                           Sizes{64, 1, 64}, Sizes{128, 64, 96}, Sizes{2, 700, 3}, Sizes{5, 7, 9}, Sizes{8, 300, 17}}) {
      for (int turn = 0; turn < 8; ++turn) {  // bit 0: a, 1: b, 2: c is transposed
        if (cases.skip()) continue;
        INFO(name(type) << " " << s.m << "x" << s.k << "x" << s.n << " transposed " << turn);
        const auto numbers = [&](ElementType of, const Extents& shape) {
          return oracle::is_real(of) ? oracle::random_array(rng, of, shape, -2, 2)
                                     : oracle::random_bits_array(rng, of, shape);
        };
        const Array a = numbers(type, {s.m, s.k}), b = numbers(type, {s.k, s.n});
        const Array c = numbers(sums, {s.m, s.n});
        const auto flip = [](const Array& x, bool yes) { return yes ? oracle::permute(x, {1, 0}) : x; };
        const auto flipped = [](const Value& x, bool yes) { return yes ? permuted(x, {1, 0}) : x; };
        std::vector<Real> bound;
        const Array expected = oracle::mma(a, b, c, bound);
        const Array actual =
            oracle::evaluate({flip(a, turn & 1), flip(b, turn & 2), flip(c, turn & 4)}, expected, [&](const Values& x) {
              return oracle::apply(Op::mma, sums,
                                   {flipped(x[0], turn & 1), flipped(x[1], turn & 2), flipped(x[2], turn & 4)});
            });
        CHECK(oracle::difference(actual, expected, 0, bound) == "");
      }
    }
  }
}

TEST_CASE("mma of tiles that are computed, broadcast, reshaped, constant; and of one tile with itself", "[cpu]") {
  oracle::Rng rng(28);
  const Array a = oracle::random_array(rng, ElementType::f32, {3, 2, 20}, -2, 2),
              row = oracle::random_array(rng, ElementType::f32, {1, 11}, -2, 2);
  const Array c = oracle::random_array(rng, ElementType::f32, {11, 6}, -2, 2), left = oracle::reshape(a, {6, 20});
  std::vector<Real> bound;
  const auto check =
      [&](const Array& x, const Array& y, const Array& z, const std::function<Value(const Values&)>& body) {
    const Array expected = oracle::mma(x, y, z, bound);
    CHECK(oracle::difference(oracle::evaluate({a, row, c}, expected, body), expected, 0, bound) == "");
  };
  const auto product = [](const Value& x, const Value& y, const Value& z) {
    return oracle::apply(Op::mma, ElementType::f32, {x, y, z});
  };
  const Array zero(ElementType::f32, {6, 11}), wide = oracle::broadcast(row, {20, 11});
  check(left, wide, zero, [&](const Values& x) {
    return product(oracle::apply_reshape(x[0], {6, 20}), stretched(x[1], {20, 11}),
                   oracle::literal(ElementType::f32, 0, {6, 11}));
  });
  check(left, oracle::unary(Op::neg, wide), oracle::permute(c, {1, 0}), [&](const Values& x) {
    return product(oracle::apply_reshape(x[0], {6, 20}), oracle::apply_unary(Op::neg, stretched(x[1], {20, 11})),
                   permuted(x[2], {1, 0}));
  });
  const Array square(ElementType::f32, {6, 6});
  check(left, oracle::permute(left, {1, 0}), square, [&](const Values& x) {
    const Value l = oracle::apply_reshape(x[0], {6, 20});
    return product(l, permuted(l, {1, 0}), oracle::literal(ElementType::f32, 0, {6, 6}));
  });
  const Array ones = oracle::filled(ElementType::f32, {20, 5}, [](std::size_t) { return 1; }),
              half = oracle::filled(ElementType::f32, {6, 5}, [](std::size_t) { return 0.5; });
  check(left, ones, half, [&](const Values& x) {
    return product(oracle::apply_reshape(x[0], {6, 20}), oracle::literal(ElementType::f32, 1, {20, 5}),
                   oracle::literal(ElementType::f32, 0.5, {6, 5}));
  });
  const Array c_row = oracle::broadcast(row, {6, 11});
  check(left, wide, c_row, [&](const Values& x) {
    return product(oracle::apply_reshape(x[0], {6, 20}), stretched(x[1], {20, 11}), stretched(x[1], {6, 11}));
  });
}

TEST_CASE("mma of NaN and infinities, and products beyond the range of f16", "[cpu]") {
  const Real nan = oracle::real_nan, inf = oracle::real_inf;
  for (ElementType type : {ElementType::f32, ElementType::tf32, ElementType::f16, ElementType::bf16}) {
    INFO(name(type));
    Array a(type, {3, 2}), b(type, {2, 3}), c = oracle::reals({3, 3}, {0, 0, 0, 1, 1, -inf, 0, nan, 0});
    a.real = {1, inf, 0, 2, 32768, 32768};
    b.real = {1, nan, -1, 1, 1, 32768};
    std::vector<Real> bound;
    Array expected = oracle::mma(a, b, c, bound);
    for (Real& x : bound)
      if (std::isnan(x)) x = 0;
    CHECK(oracle::difference(
              oracle::evaluate({a, b, c}, expected,
                               [&](const Values& x) { return oracle::apply(Op::mma, ElementType::f32, x); }),
              expected) == "");
  }
}

TEST_CASE("a matmul in a loop, in the language, with an epilogue", "[cpu]") {
  const auto k = kernel("linear", [](In<bf16, 2> x, In<bf16, 2> w, In<f32, 1> bias, Out<f32, 2> y) {
    auto [m, n] = blocks(cdiv(y.extent(0), 16), cdiv(y.extent(1), 24));
    Var acc = zeros<f32>({16, 24});
    for (Index i : range(cdiv(x.extent(1), 8)))
      acc = mma(load(x, {m, i}, {16, 8}), transpose(load(w, {n, i}, {24, 8})), acc);
    store(y, {m, n}, maximum(acc + load(bias, {n}, {24}), 0));
  });
  oracle::Rng rng(29);
  const Device& device = test_device();
  for (const auto& [rows, inner, cols] : {std::array{1, 1, 1}, {33, 61, 50}, {16, 8, 24}, {40, 3, 100}}) {
    INFO(rows << "x" << inner << "x" << cols);
    const Array a = oracle::random_array(rng, ElementType::bf16, {rows, inner}, -2, 2),
                b = oracle::random_array(rng, ElementType::bf16, {cols, inner}, -2, 2);
    const Array c = oracle::random_array(rng, ElementType::f32, {cols}, -2, 2);
    Tensor<bf16, 2> x(device, {rows, inner}), w(device, {cols, inner});
    Tensor<f32, 1> bias(device, {cols});
    Tensor<f32, 2> y(device, {rows, cols});
    const auto narrow = [](const Array& from) {
      std::vector<bf16> to(from.size());
      for (std::size_t i = 0; i < to.size(); ++i)
        to[i].bits = static_cast<std::uint16_t>(oracle::bits_of(from.real[i], ElementType::bf16));
      return to;
    };
    x.copy_from(narrow(a));
    w.copy_from(narrow(b));
    bias.copy_from(std::vector<float>(c.real.begin(), c.real.end()));
    y.copy_from(std::vector<float>(static_cast<std::size_t>(rows) * cols, NAN));
    launch(device.stream(), k, x, w, bias, y);
    std::vector<Real> bound;
    Array expected = oracle::mma(a, oracle::permute(b, {1, 0}), oracle::broadcast(c, {rows, cols}), bound);
    for (Real& v : expected.real) v = std::max<Real>(v, 0);
    const std::vector<float> got = y.to_vector();
    CHECK(oracle::difference(oracle::reals({rows, cols}, {got.begin(), got.end()}), expected, 0, bound) == "");
  }
}

/// Four matmuls in one kernel, with tiles of both operands in different storage orders; x and w are cast to Factor.
template <class T, class Factor, class Sum>
void check_orders() {
  constexpr int m = 29, k = 45, n = 43, tile_m = 32, tile_k = 48, tile_n = 48;
  INFO(name(element_type<T>) << " as " << name(element_type<Factor>));
  const auto multiply = kernel("orders", [=](In<T, 2> x, In<T, 2> xt, In<T, 2> w, In<T, 2> wt, Out<Sum, 3> y) {
    int which = 0;
    for (const bool km : {false, true})
      for (const bool nk : {false, true}) {
        const auto a = km ? xt.permute({1, 0}) : x.permute({0, 1}), b = nk ? wt.permute({1, 0}) : w.permute({0, 1});
        Tile product =
            mma(cast<Factor>(load(a, {0, 0}, {tile_m, tile_k})), cast<Factor>(load(b, {0, 0}, {tile_k, tile_n})));
        store(y, {which++, 0, 0}, expand_dims(product, 0));
      }
  });
  // Integers whose products and sums are exact in every type.
  const auto value = [](int seed, int i, int j) {
    return (i * 7 + j * 11 + seed) % 13 % 5 - (std::is_unsigned_v<T> ? 0 : 2);
  };
  const auto made = [&](int seed, int rows, int columns, bool transposed) {
    std::vector<T> values;
    for (int i = 0; i < (transposed ? columns : rows); ++i)
      for (int j = 0; j < (transposed ? rows : columns); ++j)
        values.push_back(stored<T>(transposed ? value(seed, j, i) : value(seed, i, j)));
    return tensor<T, 2>({transposed ? columns : rows, transposed ? rows : columns}, values);
  };
  const auto y = tensor<Sum, 3>({4, m, n}, std::vector<Sum>(4 * m * n, Sum(-77)));
  launch(test_device().stream(), multiply, made(1, m, k, false), made(1, m, k, true), made(4, k, n, false),
         made(4, k, n, true), y);
  std::vector<Sum> expected;
  for (int e = 0; e < 4 * m * n; ++e) {
    int sum = 0;
    for (int l = 0; l < k; ++l) sum += value(1, e / n % m, l) * value(4, l, e % n);
    expected.push_back(static_cast<Sum>(sum));
  }
  CHECK(y.to_vector() == expected);
}

TEST_CASE("matmuls for every storage order of both operands", "[cpu]") {
  check_orders<f16, f16, f32>();
  check_orders<bf16, bf16, f32>();
  check_orders<f32, tf32, f32>();
  check_orders<f32, f32, f32>();
  check_orders<i64, f32, f32>();
  check_orders<f64, f64, f64>();
  check_orders<i8, i8, i32>();
  check_orders<u8, u8, i32>();
  check_orders<f8e5m2, f8e5m2, f32>();
}

TEST_CASE("mma of a batch, and without an addend", "[cpu]") {
  oracle::Rng rng(38);
  for (const int batch : {1, 3}) {
    const int m = 5, k = 7, n = 9;
    const auto multiply = kernel("multiply", [=](In<i8, 3> x, In<i8, 3> w, Out<i32, 3> y, Out<i32, 3> z) {
      Tile a = load(x, {0, 0, 0}, {batch, m, k}), b = load(w, {0, 0, 0}, {batch, k, n});
      Tile product = mma(a, b);
      store(y, {0, 0, 0}, product);
      store(z, {0, 0, 0}, mma(a, b, product));
    });
    const Device& device = test_device();
    const auto made = [&](std::array<std::int64_t, 3> extents) {
      Tensor<i8, 3> tensor(device, extents);
      std::vector<i8> values(static_cast<std::size_t>(tensor.size()));
      for (i8& value : values) value = static_cast<i8>(oracle::between(rng, -128, 127));
      tensor.copy_from(values);
      return tensor;
    };
    const Tensor<i8, 3> x = made({batch, m, k}), w = made({batch, k, n});
    Tensor<i32, 3> y(device, {batch, m, n}), z(device, {batch, m, n});
    launch(device.stream(), multiply, x, w, y, z);
    const std::vector<i8> a = x.to_vector(), b = w.to_vector();
    std::vector<i32> once, twice;
    for (int e = 0; e < batch * m * n; ++e) {
      int sum = 0;
      for (int i = 0; i < k; ++i)
        sum +=
            a[static_cast<std::size_t>(e / n * k + i)] * b[static_cast<std::size_t>((e / (m * n) * k + i) * n + e % n)];
      once.push_back(sum);
      twice.push_back(2 * sum);
    }
    CHECK(y.to_vector() == once);
    CHECK(z.to_vector() == twice);
  }
  const auto wrong = [] {
    (void)kernel("wrong", [](Out<f32, 3> y) {
      store(y, {0, 0, 0}, mma(zeros<f32>({2, 4, 8}), zeros<f32>({3, 8, 4}), zeros<f32>({2, 4, 4})));
    });
  };
  CHECK(says(error_of(wrong), {"mma: [2,4,8] x [3,8,4] + [2,4,4]", "[b,m,k] x [b,k,n] + [b,m,n]"}));
}

namespace {

/// Batched matmuls in one op, accumulated onto it, and in a loop over k, with T cast to Factor. Small integers are
/// exact.
template <class T, class Factor, class Sum>
void check_batch(int batch, int m, int k, int n) {
  INFO(batch << " of " << name(element_type<T>) << " as " << name(element_type<Factor>) << ", " << m << "x" << k << "x"
             << n);
  constexpr int part = 8;
  const auto multiply = kernel("batch",
                               [=](In<T, 3> x, In<T, 3> w, Out<Sum, 3> y, Out<Sum, 3> z, Out<Sum, 3> by_parts) {
    const Tile a = cast<Factor>(load(x, {0, 0, 0}, {batch, m, k})), b = cast<Factor>(load(w, {0, 0, 0}, {batch, k, n}));
    const Tile product = mma(a, b);
    store(y, {0, 0, 0}, product);
    store(z, {0, 0, 0}, mma(a, b, product * 2));
    Var sums = full<Sum>({batch, m, n}, 1);
    for (Index i : range(cdiv(x.extent(2), part)))
      sums = mma(cast<Factor>(load(x, {0, 0, i}, {batch, m, part})), cast<Factor>(load(w, {0, i, 0}, {batch, part, n})),
                 sums);
    store(by_parts, {0, 0, 0}, sums);
  });
  const auto value = [](int seed, int i) { return (i * 7 + i / 11 + seed) % 13 % 5 - (std::is_unsigned_v<T> ? 0 : 2); };
  const auto made = [&](int seed, const std::array<std::int64_t, 3>& extents) {
    std::vector<T> values;
    for (int i = 0; i < extents[0] * extents[1] * extents[2]; ++i) values.push_back(stored<T>(value(seed, i)));
    return tensor<T, 3>(extents, values);
  };
  const auto size = static_cast<std::size_t>(batch * m * n);
  const auto fresh = [&] { return tensor<Sum, 3>({batch, m, n}, std::vector<Sum>(size, Sum(-77))); };
  const auto y = fresh(), z = fresh(), by_parts = fresh();
  launch(test_device().stream(), multiply, made(1, {batch, m, k}), made(4, {batch, k, n}), y, z, by_parts);
  std::vector<Sum> once, thrice, one_more;
  for (int e = 0; e < batch * m * n; ++e) {
    int sum = 0;
    for (int l = 0; l < k; ++l) sum += value(1, e / n * k + l) * value(4, (e / (m * n) * k + l) * n + e % n);
    once.push_back(static_cast<Sum>(sum));
    thrice.push_back(static_cast<Sum>(3 * sum));
    one_more.push_back(static_cast<Sum>(sum + 1));
  }
  CHECK(y.to_vector() == once);
  CHECK(z.to_vector() == thrice);
  CHECK(by_parts.to_vector() == one_more);
}

}  // namespace

TEST_CASE("mma of a batch, for every operand type", "[cpu]") {
  Cases cases(11);
  const auto chosen = [&](void (*check)(int, int, int, int), int batch, int m, int k, int n) {
    if (!cases.skip()) check(batch, m, k, n);
  };
  chosen(check_batch<f16, f16, f32>, 3, 17, 20, 9);
  chosen(check_batch<f32, f32, f32>, 3, 5, 11, 3);
  chosen(check_batch<f64, f64, f64>, 2, 3, 9, 5);
  chosen(check_batch<bf16, bf16, f32>, 2, 16, 16, 24);
  chosen(check_batch<f32, tf32, f32>, 2, 18, 12, 9);
  chosen(check_batch<f8e5m2, f8e5m2, f32>, 2, 17, 20, 9);
  chosen(check_batch<f8e4m3, f8e4m3, f32>, 1, 3, 9, 2);
  chosen(check_batch<u8, u8, i32>, 2, 17, 36, 9);
  chosen(check_batch<f16, f16, f32>, 1, 1, 1, 1);
  chosen(check_batch<f32, f32, f32>, 5, 3, 9, 1);
  chosen(check_batch<f64, f64, f64>, 3, 1, 17, 4);
}

TEST_CASE("literals that an 8-bit, 64-bit or unsigned type does not hold", "[cpu]") {
  const auto traced = [](auto body) { return error_of([&] { (void)trace_kernel("literals", body); }); };
  using tessera::internal::Out;
  CHECK(says(traced([](Out<f8e4m3, 1> y) { store(y, {0}, full<f8e4m3>({4}, 500.0)); }), {"500", "f8e4m3", "range"}));
  CHECK(says(traced([](Out<f8e5m2, 1> y) { store(y, {0}, full<f8e5m2>({4}, 60000.0)); }), {"60000", "range"}));
  CHECK(says(traced([](Out<f64, 1> y) { store(y, {0}, full<f64>({4}, 9007199254740993ll)); }), {"rounded"}));
  CHECK(says(traced([](Out<u32, 1> y) { store(y, {0}, full<u32>({4}, -1)); }), {"-1", "[0, 4294967295]"}));
  CHECK(says(traced([](Out<i8, 1> y) { store(y, {0}, full<i8>({4}, 128)); }), {"128", "[-128, 127]"}));
  CHECK(traced([](Out<f64, 1> y) { store(y, {0}, full<f64>({4}, 1e300)); }) == "(no error)");
  CHECK(traced([](Out<u64, 1> y) { store(y, {0}, full<u64>({4}, 18446744073709551615ull)); }) == "(no error)");
}

TEST_CASE("a literal is rounded to the nearest 8-bit number, toward zero if that is nearer", "[cpu]") {
  const auto literals = kernel("literals", [](tessera::internal::Out<f32, 1> y) {
    store(y, {0}, cast<f32>(full<f8e4m3>({1}, 0.7)));
    store(y, {1}, cast<f32>(full<f8e4m3>({1}, -0.7)));
    store(y, {2}, cast<f32>(full<f8e4m3>({1}, 448.0)));
    store(y, {3}, cast<f32>(full<f8e5m2>({1}, 9.0)));
    store(y, {4}, cast<f32>(full<f8e5m2>({1}, 11.0)));
    store(y, {5}, cast<f32>(full<f8e5m2>({1}, -57344.0)));
  });
  Tensor<f32, 1> y(test_device(), {6});
  launch(y.device().stream(), literals, y);
  CHECK(y.to_vector() == std::vector<f32>{0.6875f, -0.6875f, 448, 8, 12, -57344});
  const auto whole = [] {
    (void)trace_kernel("whole", [](tessera::internal::Out<f8e5m2, 1> y) { store(y, {0}, full<f8e5m2>({4}, 9)); });
  };
  CHECK(says(error_of(whole), {"the literal 9 does not fit f8e5m2: it would be rounded"}));
}

// Random graphs
// ----------------------------------------------------------------------------------------------------------

namespace {

/// A random kernel and the exact value of each of its nodes. Reals are whole numbers so small that they never need
/// rounding, in any order of operations and with any contraction.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : rng_(seed) {
    for (int i = oracle::between(rng_, 1, 4); i > 0; --i) {
      const ElementType type =
          one_of({ElementType::f32, ElementType::f32, ElementType::i32, ElementType::i64, ElementType::pred});
      const Extents shape = random_shape();
      inputs_.push_back(
          oracle::is_real(type)      ? oracle::cast(oracle::random_array(rng_, ElementType::i32, shape, -9, 9), type)
          : oracle::chance(rng_, 30) ? oracle::random_bits_array(rng_, type, shape)
                                     : oracle::random_array(rng_, type, shape, type == ElementType::pred ? 0 : -9,
                                                            type == ElementType::pred ? 1 : 9));
      known_.push_back(inputs_.back());
    }
    for (int i = oracle::between(rng_, 3, 30); i > 0;) i -= grow();
    for (int i = oracle::between(rng_, 1, 3); i > 0; --i)
      results_.push_back(oracle::between<std::size_t>(rng_, known_.size() / 2, known_.size() - 1));
    results_.push_back(known_.size() - 1);
  }

  /// Empty, or the first wrong result and the kernel.
  std::string check() {
    std::vector<Array> like;
    for (std::size_t i : results_) like.push_back(known_[i]);
    std::string graph;
    const std::vector<Array> got = oracle::evaluate(
        inputs_, like,
        [&](const Values& tiles) {
      Values values = tiles;
      for (const Step& step : steps_) values.push_back(step(values));
      Values out;
      for (std::size_t i : results_) out.push_back(values[i]);
      return out;
        },
        &graph);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (const std::string wrong = oracle::difference(got[i], like[i]); !wrong.empty())
        return "result " + std::to_string(i) + ": " + wrong + "\n" + graph;
    }
    return "";
  }

 private:
  using Step = std::function<Value(const Values&)>;

  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return oracle::one_of(rng_, std::vector<T>(choices));
  }
  Extents random_shape() {
    static const std::vector<Extents> choices = {{},     {1},       {7},       {1, 7},       {3, 1},  {3, 7},
                                                 {3, 7}, {2, 3, 7}, {2, 3, 1}, {2, 1, 1, 7}, {40, 7}, {40, 1},
                                                 {260},  {3, 260},  {7, 3},    {21}};
    return oracle::one_of(rng_, choices);
  }
  static Real largest(const Array& a) {
    Real x = 0;
    for (Real r : a.real) x = std::max(x, std::abs(r));
    for (i64 w : a.whole) x = std::max(x, std::abs(Real(w)));
    return x;
  }
  std::size_t pick() {
    // Often recent ones, so that dependent sequences grow long.
    const std::size_t last = known_.size() - 1;
    return oracle::chance(rng_, 50) ? oracle::between<std::size_t>(rng_, 0, last)
                                    : oracle::between<std::size_t>(rng_, last - std::min<std::size_t>(last, 3), last);
  }
  bool add(Array value, Step step) {
    if (value.size() > 4000) return false;
    if (value.type == ElementType::f32) {
      for (Real x : value.real)
        if (!(std::abs(x) <= 0x1p24L)) return false;
    }
    known_.push_back(std::move(value));
    steps_.push_back(std::move(step));
    return true;
  }

  /// Adds a node, or gives up.
  bool grow() {
    const std::size_t i = pick(), j = pick();
    const Array &a = known_[i], &b = known_[j];
    const bool logical = a.type == ElementType::pred, computes = info(a.type).computes;
    switch (oracle::between(rng_, 0, 15)) {
      case 0: {
        const Op op = logical ? Op::logical_not : one_of({Op::neg, Op::abs});
        if (!logical && !computes) return false;
        return add(oracle::unary(op, a), [=](const Values& v) { return oracle::apply_unary(op, v[i]); });
      }
      case 1:
      case 2:
      case 3:
      case 4: {
        if (a.type != b.type || !oracle::common_shape(a.shape, b.shape)) return false;
        const Op op = logical ? one_of({Op::logical_and, Op::logical_or})
                              : one_of({Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum, Op::floor_div, Op::modulo,
                                        Op::less, Op::less_equal, Op::greater, Op::greater_equal, Op::equal,
                                        Op::not_equal, Op::minimum_nan, Op::maximum_nan});
        if (!accepts(op, a.type)) return false;
        if (op == Op::mul && oracle::is_real(a.type) && largest(a) * largest(b) > 0x1p20L) return false;
        return add(oracle::binary(op, a, b), [=](const Values& v) { return oracle::apply_binary(op, v[i], v[j]); });
      }
      case 5: {
        if (!computes) return false;
        const ElementType type = a.type;
        const i64 number = oracle::between<i64>(rng_, -3, 3);
        Array one = oracle::filled(type, {}, [&](std::size_t) { return static_cast<double>(number); });
        const Op op = one_of(
            {Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum, Op::floor_div, Op::modulo, Op::less, Op::equal});
        if (!accepts(op, type)) return false;
        if (oracle::chance(rng_, 50))
          return add(oracle::binary(op, a, one),
                     [=](const Values& v) { return oracle::apply_binary(op, v[i], oracle::literal(type, number)); });
        return add(oracle::binary(op, one, a),
                   [=](const Values& v) { return oracle::apply_binary(op, oracle::literal(type, number), v[i]); });
      }
      case 6: {
        const std::size_t c = pick();
        if (known_[c].type != ElementType::pred || a.type != b.type) return false;
        const auto shape = oracle::common_shape(a.shape, b.shape);
        if (!shape || !oracle::common_shape(*shape, known_[c].shape)) return false;
        const ElementType type = a.type;
        return add(oracle::select(known_[c], a, b), [=](const Values& v) {
          return oracle::apply(Op::select, type, {v[c], v[i], v[j]});
        });
      }
      case 7: {
        const ElementType to =
            one_of({ElementType::f32, ElementType::i32, ElementType::i64, ElementType::pred, ElementType::f16,
                    ElementType::bf16, ElementType::u8, ElementType::tf32, ElementType::f64, ElementType::i8});
        const bool wide = to == ElementType::f32 || to == ElementType::f64;
        if (oracle::is_real(to) && largest(a) > (wide ? 0x1p24L : 60000)) return false;
        return add(oracle::cast(a, to), [=](const Values& v) { return oracle::apply_cast(v[i], to); });
      }
      case 8: {
        const std::vector<int> axes = random_axes(rng_, a.shape.size());
        return add(oracle::permute(a, axes), [=](const Values& v) { return permuted(v[i], axes); });
      }
      case 9: {
        const int size = static_cast<int>(a.size());
        std::vector<Extents> choices = {{size}, {1, size}, {size, 1}};
        for (int d : {2, 3, 7, 20})
          if (size % d == 0) choices.push_back({d, size / d}), choices.push_back({size / d, 1, d});
        if (size == 1) choices.push_back({});
        const Extents shape = oracle::one_of(rng_, choices);
        return add(oracle::reshape(a, shape), [=](const Values& v) { return oracle::apply_reshape(v[i], shape); });
      }
      case 10: {
        Extents shape = a.shape;
        for (int& extent : shape)
          if (extent == 1 && oracle::chance(rng_, 70)) extent = one_of({2, 3, 7});
        if (shape.size() < 4 && oracle::chance(rng_, 40)) shape.insert(shape.begin(), one_of({1, 3}));
        return add(oracle::broadcast(a, shape), [=](const Values& v) { return stretched(v[i], shape); });
      }
      case 11: {
        if (a.type != b.type || a.shape.size() != b.shape.size() || a.shape.empty()) return false;
        const int axis = oracle::between(rng_, 0, a.rank() - 1);
        for (int k = 0; k < a.rank(); ++k)
          if (k != axis && a.shape[k] != b.shape[k]) return false;
        const ElementType type = a.type;
        return add(oracle::concat({a, b, a}, axis), [=](const Values& v) {
          return oracle::apply(Op::concat, type, {v[i], v[j], v[i]}, {axis});
        });
      }
      case 12:
      case 13: {
        if (!computes || a.shape.empty()) return false;
        const Op op = oracle::one_of(rng_, std::vector<Op>(std::begin(all_along), std::end(all_along)));
        if (!takes(op, a.type) || ((op == Op::prod || op == Op::cumprod) && oracle::is_real(a.type))) return false;
        const int axis = oracle::between(rng_, 0, a.rank() - 1);
        if (oracle::is_real(a.type) && largest(a) * a.shape[axis] > 0x1p24L) return false;
        return add(expected_along(op, a, axis, nullptr), [=](const Values& v) { return along(op, v[i], axis); });
      }
      case 14: {
        const Extents shape = random_shape();
        if (shape.empty() || a.type == ElementType::tf32) return false;
        const int axis = oracle::between(rng_, 0, static_cast<int>(shape.size()) - 1);
        return add(oracle::iota(shape, axis),
                   [=](const Values&) { return oracle::apply(Op::iota, ElementType::i32, {}, {axis}, shape); });
      }
      default: {
        if (!info(a.type).multiplies || a.type != b.type || a.rank() != 2 || b.rank() != 2) return false;
        const bool turn = a.shape[1] != b.shape[0];
        if (turn && a.shape[1] != b.shape[1]) return false;
        if (largest(a) * largest(b) * a.shape[1] > 0x1p23L) return false;
        const Array right = turn ? oracle::permute(b, {1, 0}) : b;
        const int m = a.shape[0], n = right.shape[1];
        std::vector<Real> bound;
        const ElementType sums = sum_type(a.type);
        return add(oracle::mma(a, right, Array(sums, {m, n}), bound), [=](const Values& v) {
          return oracle::apply(Op::mma, sums,
                               {v[i], turn ? permuted(v[j], {1, 0}) : v[j], oracle::literal(sums, 0, {m, n})});
        });
      }
    }
  }

  oracle::Rng rng_;
  std::vector<Array> inputs_, known_;
  std::vector<Step> steps_;
  std::vector<std::size_t> results_;
};

}  // namespace

TEST_CASE("random graphs return exactly the results of their ops", "[cpu]") {
  const Seeds seeds(1500);
  for (std::uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    INFO("seed " << seed);
    CHECK(RandomGraph(seed).check() == "");
  }
}

}  // namespace test_ops_structural
