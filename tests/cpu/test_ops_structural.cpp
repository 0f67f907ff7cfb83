// Ops that move elements, constant tiles and literals, against the fine print of ops.def.
#include "support/catch.hpp"
#include "support/structural_ops.hpp"
#include "support/support.hpp"

namespace test_ops_structural {

using namespace tessera::internal;
using namespace structural_ops;

namespace {

const Extents shapes[] = {{1},          {7},          {1537},     {3, 5},     {16, 33},
                          {1, 64},      {64, 1},      {77, 130},  {5, 1, 7},  {2, 17, 3},
                          {2, 3, 4, 5}, {1, 9, 1, 3}, {3, 2, 70}, {70, 2, 3}, {2, 2, 2, 2, 3, 2}};

}  // namespace

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

}  // namespace test_ops_structural
