// Reductions and scans against the fine print of ops.def, and by functions of the author.
#include <array>

#include "support/catch.hpp"
#include "support/structural_ops.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"

namespace test_reductions {

using namespace tessera::internal;
using namespace structural_ops;

namespace {

constexpr Op reductions[] = {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(name, ...) Op::name,
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
};

const Extents shapes[] = {{1},          {7},          {1537},     {3, 5},     {16, 33},
                          {1, 64},      {64, 1},      {77, 130},  {5, 1, 7},  {2, 17, 3},
                          {2, 3, 4, 5}, {1, 9, 1, 3}, {3, 2, 70}, {70, 2, 3}, {2, 2, 2, 2, 3, 2}};

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

/// Numbers whose product neither overflows nor underflows, in any order.
Array near_one(oracle::Rng& rng, ElementType type, const Extents& shape) {
  Array a(type, shape);
  for (Real& x : a.real) x = std::array<float, 4>{-1, 1, 1.25f, 0.8125f}[oracle::between<std::size_t>(rng, 0, 3)];
  return a;
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
          const Array actual = oracle::evaluate(
              {a}, expected, [&](const Values& x) { return oracle::apply(op, type, {x[0]}, {axis, way}); });
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
  const auto k =
      kernel("several", [](In<f32, 3> x, Out<f32, 3> a, Out<f32, 3> b, Out<f32, 3> c, Out<f32, 3> d, Out<i32, 3> e) {
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
    const Tile digits = scan(bs, -1, [](const auto& x, const auto& y) { return maximum(x, y); }, -100);
    store(z, {0, 0}, concat(1, sum + product, reduce(digits, 1, [](auto x, auto y) { return minimum(x, y); }, 100)));
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
    store(out, {0, 0}, reduce(t, 1, [](const auto& x, const auto& y) { return sum(x + y, 1); }, 0));
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

}  // namespace test_reductions
