// Elementwise ops against the fine print of ops.def: every op, every element type, shapes that no vector width divides,
// broadcasting, literals.
#include "support/catch.hpp"
#include "support/element_ops.hpp"
#include "support/support.hpp"

namespace test_ops_elementwise {

using namespace tessera::internal;
using namespace element_ops;

namespace {

const Extents shapes[] = {{},        {1},          {7},       {3, 5},          {16, 33},
                          {5, 1, 7}, {2, 3, 4, 5}, {1, 1, 1}, {1, 1, 1, 9},    {1537},
                          {29, 53},  {31, 1},      {1, 64},   {2, 1, 3, 2, 5}, {3, 2, 1, 2, 3, 3}};

}  // namespace

TEST_CASE("every unary op, every element type, ragged shapes", "[cpu]") {
  Cases cases(200);
  oracle::Rng rng(1);
  for (const TableOp& t : unary_ops) {
    for (ElementType type : all_types) {
      if (!accepts(t.op, type)) continue;
      for (const Extents& shape : shapes) {
        if (cases.skip()) continue;
        INFO(name(t.op) << " of " << name(type) << oracle::text_of(shape));
        const Array a = oracle::random_array(rng, type, shape, t.low, t.high);
        CHECK(difference(t.op, a) == "");
      }
    }
  }
}

TEST_CASE("every binary op, every element type, ragged shapes", "[cpu]") {
  Cases cases(1500);
  oracle::Rng rng(2);
  for (const TableOp& t : binary_ops) {
    for (ElementType type : all_types) {
      if (!accepts(t.op, type)) continue;
      for (const Extents& shape : shapes) {
        if (cases.skip()) continue;
        INFO(name(t.op) << " of " << name(type) << oracle::text_of(shape));
        const Array a = oracle::random_array(rng, type, shape, t.low, t.high);
        const Array b = oracle::random_array(rng, type, shape, t.low, t.high);
        CHECK(difference(t.op, a, b) == "");
        CHECK(difference(t.op, a, a) == "");
      }
    }
  }
}

TEST_CASE("every ternary op, every element type, ragged and broadcast shapes", "[cpu]") {
  Cases cases(200);
  oracle::Rng rng(12);
  const std::array<Extents, 3> stretched[] = {{Extents{3, 5}, Extents{5}, Extents{}},
                                              {Extents{}, Extents{7}, Extents{4, 1}},
                                              {Extents{2, 1, 6}, Extents{3, 1}, Extents{2, 3, 6}},
                                              {Extents{1}, Extents{1}, Extents{33}},
                                              {Extents{2, 1, 3, 1, 5}, Extents{2, 1, 4, 1}, Extents{5}},
                                              {Extents{3, 1}, Extents{2, 1, 3, 1, 3, 2}, Extents{2, 1, 2, 1, 2}}};
  for (const TableOp& t : ternary_ops) {
    for (ElementType type : all_types) {
      if (!accepts(t.op, type)) continue;
      const auto random = [&](const Extents& shape) { return oracle::random_array(rng, type, shape, t.low, t.high); };
      for (const Extents& shape : shapes) {
        if (cases.skip()) continue;
        INFO(name(t.op) << " of " << name(type) << oracle::text_of(shape));
        const Array a = random(shape), b = random(shape), c = random(shape);
        CHECK(difference(t.op, a, b, c) == "");
        CHECK(difference(t.op, a, a, b) == "");
        CHECK(difference(t.op, a, b, a) == "");
      }
      for (const auto& [x, y, z] : stretched) {
        if (cases.skip()) continue;
        INFO(name(t.op) << " of " << oracle::text_of(x) << ", " << oracle::text_of(y) << " and " << oracle::text_of(z));
        CHECK(difference(t.op, random(x), random(y), random(z)) == "");
      }
    }
  }
}

TEST_CASE("fma rounds once, and clamp keeps values between its limits", "[cpu]") {
  const auto reals = [](std::vector<Real> values) { return oracle::reals({static_cast<int>(values.size())}, values); };
  // (1 + u)(1 - u) - 1 = -u^2, which would be 0 if the product were rounded first.
  const Real u = 0x1p-23L;
  const Array x = reals({1 + u}), y = reals({1 - u}), z = reals({-1});
  CHECK(on_device(Op::fma, x, y, z).real[0] == -u * u);
  const Array value = reals({-5, 5, 0.25L, oracle::real_nan, 3, oracle::real_inf, -oracle::real_inf, 1, 1});
  const Array low = reals({-1, -1, -1, -1, oracle::real_nan, -1, -1, 2, -1}),
              high = reals({1, 1, 1, 1, 2, 1, 1, -2, oracle::real_nan});
  const Array expected = reals({-1, 1, 0.25L, -1, 2, 1, -1, -2, 1});
  CHECK(oracle::difference(on_device(Op::clamp, value, low, high), expected, 0) == "");
  const auto wholes = [](std::vector<i64> values) { return oracle::wholes(ElementType::i64, {4}, std::move(values)); };
  const i64 far = i64{1} << 60;
  CHECK(difference(Op::clamp, wholes({-far, far, 3, 3}), wholes({-7, -7, far, -far}), wholes({9, 9, far + 1, -far})) ==
        "");
}

TEST_CASE("three operands may be numbers and tiles", "[cpu]") {
  const Graph graph = trace_kernel("mixed",
                                   [](In<f32, 2> x, In<i32, 1> n, Out<f32, 2> y, Out<i32, 1> m, Scalar<f32> s) {
    Tile f = load(x, {0, 0}, {4, 8});
    Tile i = load(n, {0}, {8});
    store(y, {0, 0}, fma(2, f, s) + fma(s, 0.5f, f) + clamp(f, -1, 1) + clamp(0.25f, f, sum(f, 1)) + clamp(s, s, f));
    store(m, {0}, clamp(i, 0, item(max(i, Axis(0)))));
  });
  int fmas = 0, clamps = 0;
  for (const Node& node : graph.nodes) fmas += node.op == Op::fma, clamps += node.op == Op::clamp;
  CHECK(fmas == 2);
  CHECK(clamps == 4);
}

TEST_CASE("operands are broadcast by NumPy's rule", "[cpu]") {
  Cases cases(800);
  oracle::Rng rng(3);
  const std::pair<Extents, Extents> pairs[] = {
      {{}, {3, 5}},
      {{5}, {3, 5}},
      {{1, 5}, {3, 1}},
      {{3, 1}, {3, 5}},
      {{1}, {7}},
      {{1, 1}, {16, 33}},
      {{16, 1}, {1, 33}},
      {{33}, {16, 33}},
      {{2, 3, 4, 5}, {}},
      {{4, 1}, {2, 3, 4, 5}},
      {{2, 1, 4, 1}, {3, 1, 5}},
      {{2, 1, 1, 5}, {1, 3, 4, 1}},
      {{1537}, {3, 1}},
      {{3, 1537}, {1537}},
      {{3, 1537}, {3, 1}},
      {{1, 1}, {1}},
      {{}, {}},
      {{7, 1, 9}, {8, 1}},
      {{1, 1, 1, 1}, {2, 2}},
      {{300, 1}, {1, 7}},
      {{2, 1, 3, 1, 5, 1}, {1, 2, 1, 4, 1, 6}},
      {{5, 64}, {64}},
      {{17, 4, 1}, {17, 1, 4}},
  };
  for (const auto& [left, right] : pairs) {
    for (const TableOp& t : binary_ops) {
      const ElementType type = accepts(t.op, ElementType::f32) ? ElementType::f32 : ElementType::i32;
      if (!accepts(t.op, type) || cases.skip()) continue;
      INFO(name(t.op) << " of " << oracle::text_of(left) << " and " << oracle::text_of(right));
      const Array a = oracle::random_array(rng, type, left, t.low, t.high);
      const Array b = oracle::random_array(rng, type, right, t.low, t.high);
      CHECK(difference(t.op, a, b) == "");
      CHECK(difference(t.op, b, a) == "");
    }
  }
}

TEST_CASE("operands of five and of six axes are broadcast, of every element type", "[cpu]") {
  Cases cases(400);
  oracle::Rng rng(15);
  const std::pair<Extents, Extents> pairs[] = {{{2, 1, 3, 1, 5}, {3, 1, 4, 1}},
                                               {{1, 3, 1, 2, 1, 3}, {2, 1, 2, 1, 2, 1}},
                                               {{2, 3, 1, 2, 1, 3}, {3}},
                                               {{3, 1}, {2, 1, 1, 2, 3, 2}},
                                               {{}, {2, 3, 2, 1, 3}}};
  std::size_t next = 0;
  for (const TableOp& t : binary_ops) {
    for (ElementType type : all_types) {
      if (!accepts(t.op, type)) continue;
      const auto& [left, right] = pairs[next++ % std::size(pairs)];
      if (cases.skip()) continue;
      INFO(name(t.op) << " of " << name(type) << oracle::text_of(left) << " and " << oracle::text_of(right));
      const Array a = oracle::random_array(rng, type, left, t.low, t.high);
      const Array b = oracle::random_array(rng, type, right, t.low, t.high);
      CHECK(difference(t.op, a, b) == "");
      CHECK(difference(t.op, b, a) == "");
    }
  }
  // Types without arithmetic are only moved: loaded, broadcast and stored.
  for (ElementType type : all_types) {
    if (type == ElementType::pred || cases.skip()) continue;
    INFO(name(type));
    const bool small = type == ElementType::u8;
    const Array condition = oracle::random_array(rng, ElementType::pred, {2, 1, 3, 1, 2, 1}, 0, 1);
    const Array a = oracle::random_array(rng, type, {3, 1, 2, 1, 5}, small ? 0 : -100, 100);
    const Array b = oracle::random_array(rng, type, {2, 1, 1, 2, 1, 5}, small ? 0 : -100, 100);
    const Array expected = oracle::select(condition, a, b);
    CHECK(oracle::difference(oracle::evaluate({condition, a, b}, expected,
                                              [&](const Values& v) { return oracle::apply(Op::select, type, v); }),
                             expected) == "");
  }
}

TEST_CASE("shapes that do not broadcast are rejected when traced", "[cpu]") {
  for (const auto& [left, right] :
       {std::pair<Extents, Extents>{{3}, {4}}, {{3, 5}, {3}}, {{2, 3}, {3, 3}}, {{2}, {4}}}) {
    INFO(oracle::text_of(left) << " and " << oracle::text_of(right));
    const Array a(ElementType::f32, left), b(ElementType::f32, right);
    CHECK_THROWS_AS(
        oracle::evaluate({a, b}, a, [](const Values& x) { return oracle::apply_binary(Op::add, x[0], x[1]); }), Error);
  }
}

TEST_CASE("each language function makes the op of its name", "[cpu]") {
  const auto check = []<class T>(T) {
    (void)kernel("names", [](In<T, 1> in, Out<T, 1> out) {
      const Tile x = load(in, {0}, {8}), y = load(in, {1}, {8});
      Trace& trace = Trace::current(oracle::here());
      const auto id = [&](const auto& e) { return e.lower(trace, oracle::here()).id; };
      const auto made = [&](Op op, std::initializer_list<Handle> operands) {
        return trace.apply(op, result_type(op, element_type<T>), operands, {}, oracle::here()).id;
      };
      const Handle a = x.lower(trace, {}), b = y.lower(trace, {});
#define UNARY(name, ...) \
  if constexpr (accepts(Op::name, element_type<T>)) CHECK(id(name(x)) == made(Op::name, {a}));
#define BINARY(name, ...) \
  if constexpr (accepts(Op::name, element_type<T>)) CHECK(id(name(x, y)) == made(Op::name, {a, b}));
#define TERNARY(name, ...) \
  if constexpr (accepts(Op::name, element_type<T>)) CHECK(id(name(x, y, x)) == made(Op::name, {a, b, a}));
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
      CHECK(id(x + y) == made(Op::add, {a, b}));
      CHECK(id(x - y) == made(Op::sub, {a, b}));
      CHECK(id(x * y) == made(Op::mul, {a, b}));
      if constexpr (std::integral<T>) {
        CHECK(id(x / y) == made(Op::floor_div, {a, b}));
        CHECK(id(x % y) == made(Op::modulo, {a, b}));
        CHECK(id(x & y) == made(Op::bitwise_and, {a, b}));
        CHECK(id(x | y) == made(Op::bitwise_or, {a, b}));
        CHECK(id(x ^ y) == made(Op::bitwise_xor, {a, b}));
        CHECK(id(x << y) == made(Op::shift_left, {a, b}));
        CHECK(id(x >> y) == made(Op::shift_right, {a, b}));
        CHECK(id(~x) == made(Op::bitwise_not, {a}));
        Var v = x;
        v ^= y;
        CHECK(id(v) == made(Op::bitwise_xor, {a, b}));
        v = x;
        v <<= y;
        CHECK(id(v) == made(Op::shift_left, {a, b}));
        v = x;
        v >>= y;
        CHECK(id(v) == made(Op::shift_right, {a, b}));
      } else {
        CHECK(id(x / y) == made(Op::div, {a, b}));
        CHECK(id(minimum(x, y, Nan::propagate)) == made(Op::minimum_nan, {a, b}));
        CHECK(id(maximum(x, y, Nan::propagate)) == made(Op::maximum_nan, {a, b}));
      }
      CHECK(id(-x) == made(Op::neg, {a}));
      CHECK(id(minimum(x, y, Nan::ignore)) == made(Op::minimum, {a, b}));
      CHECK(id(maximum(x, 1, Nan::ignore)) == id(maximum(x, 1)));
      CHECK(id(x < y) == made(Op::less, {a, b}));
      CHECK(id(x <= y) == made(Op::less_equal, {a, b}));
      CHECK(id(x > y) == made(Op::greater, {a, b}));
      CHECK(id(x >= y) == made(Op::greater_equal, {a, b}));
      CHECK(id(x == y) == made(Op::equal, {a, b}));
      CHECK(id(x != y) == made(Op::not_equal, {a, b}));
      store(out, {0}, x);
    });
  };
  check(f32{});
  check(f64{});
  check(i32{});
  check(i64{});
  (void)kernel("logic", [](In<f32, 1> in, Out<f32, 1> out) {
    const Tile x = load(in, {0}, {8});
    const Tile p = x<1.0f, q = x> 0.0f;
    Trace& trace = Trace::current(oracle::here());
    const auto id = [&](const auto& e) { return e.lower(trace, oracle::here()).id; };
    CHECK(id(p & q) == id(logical_and(p, q)));
    CHECK(id(p | q) == id(logical_or(p, q)));
    CHECK(id(p ^ q) == id(logical_xor(p, q)));
    CHECK(id(!p) == id(logical_not(p)));
    store(out, {0}, x);
  });
}

TEST_CASE("integers wrap", "[cpu]") {
  Cases cases(30);
  oracle::Rng rng(4);
  for (ElementType type : {ElementType::i32, ElementType::i64}) {
    for (const TableOp& t : binary_ops) {
      if (!accepts(t.op, type) || t.op == Op::random_uniform || cases.skip()) continue;
      INFO(name(t.op) << " of " << name(type));
      const Array a = oracle::random_bits_array(rng, type, {3001}), b = oracle::random_bits_array(rng, type, {3001});
      CHECK(difference(t.op, a, b) == "");
    }
    for (Op op : {Op::neg, Op::abs, Op::sign, Op::bitwise_not, Op::popcount, Op::clz})
      CHECK(difference(op, oracle::random_bits_array(rng, type, {1001})) == "");
  }
}

TEST_CASE("literals take the other operand's type", "[cpu]") {
  const Device& device = test_device();
  const std::vector<float> x = {-2.5f, -1, 0, 0.5f, 3, 100, INFINITY, -INFINITY, NAN};
  const auto results = [&](const auto& f) {
    return launch_on(kernel("literal", [&](In<f32, 1> in, Out<f32, 1> out) { store(out, {0}, f(load(in, {0}, {9}))); }),
                     x);
  };
  const auto expect = [&](const std::vector<float>& got, const auto& f) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO("element " << x[i]);
      const float wanted = f(x[i]);
      CHECK((std::isnan(wanted) ? std::isnan(got[i]) : got[i] == wanted));
    }
  };
  expect(results([](auto t) { return 2 - t; }), [](float v) { return 2 - v; });
  expect(results([](auto t) { return t / 4.0; }), [](float v) { return v / 4; });
  expect(results([](auto t) { return where(t > -inf, t, 7); }), [](float v) { return v > -INFINITY ? v : 7; });
  expect(results([](auto t) { return cast<f32>(where(t == 3, -1, 0) + cast<i32>(t != t) * 5); }), [](float v) {
    return v == 3 ? -1.0f : v != v ? 5.0f : 0.0f;
  });
  expect(results([](auto t) { return maximum(minimum(t, 2), -1.5) + 16777216; }),
         [](float v) { return (v != v ? 2.0f : std::max(std::min(v, 2.0f), -1.5f)) + 16777216.0f; });
  expect(results([](auto t) { return t * 0.1; }), [](float v) { return v * 0.1f; });

  SECTION("integers") {
    const auto k = kernel("integers", [](In<i64, 1> in, Out<i64, 1> out, Scalar<i64> s, Scalar<i32> t, Scalar<f32> u) {
      const Tile v = load(in, {0}, {5});
      store(out, {0}, v * 3000000000 + (7 - v) % 4 + s - cast<i64>(t * 2) + cast<i64>(u * 2));
    });
    Tensor<i64, 1> in(device, {5}), out(device, {5});
    const std::vector<i64> values = {0, 1, -1, 1'000'000'000'000, std::numeric_limits<i64>::min()};
    in.copy_from(values);
    launch(device.stream(), k, in, out, 5'000'000'000, -7, 1.75f);
    for (std::size_t i = 0; i < 5; ++i) {
      const oracle::Wide v = values[i], left = static_cast<i64>(7 - static_cast<std::uint64_t>(values[i]));
      CHECK(out.to_vector()[i] ==
            oracle::wrapped(v * 3000000000 + ((left % 4) + 4) % 4 + 5'000'000'000 + 14 + 3, ElementType::i64));
    }
  }
  SECTION("out of range") {
    const auto refused = [](const auto& body) {
      return error_of([&] {
               (void)kernel("literal", [&](In<f32, 1> in, Out<f32, 1> out) {
                 store(out, {0}, load(in, {0}, {4}));
                 body(load(in, {0}, {4}));
               });
             }) != "(no error)";
    };
    CHECK(refused([](auto t) { (void)Tile(t + 16777217); }));
    CHECK(refused([](auto t) { (void)Tile(cast<i32>(t) + 3000000000); }));
    CHECK(refused([](auto t) { (void)Tile(cast<i32>(t) < -3000000000); }));
    CHECK(refused([](auto) { full<u8>({4}, 256); }));
    CHECK(refused([](auto) { full<u8>({4}, -1); }));
    CHECK(refused([](auto) { full<f16>({4}, 2049); }));
    CHECK(refused([](auto) { full<bf16>({4}, 257); }));
    CHECK(refused([](auto t) { (void)Tile(t * 1e300); }));
    CHECK(refused([](auto) { full<f16>({4}, 1e5); }));
    CHECK(!refused([](auto t) { (void)Tile(t + 16777216); }));
    CHECK(!refused([](auto t) { (void)Tile(t * -inf); }));
    CHECK(!refused([](auto t) { (void)Tile(cast<i32>(t) + (-2147483647 - 1)); }));
    CHECK(!refused([](auto) { full<u8>({4}, 255); }));
    CHECK(!refused([](auto) { full<f16>({4}, 2048); }));
    CHECK(!refused([](auto) { full<f16>({4}, 0.1); }));
  }
}

TEST_CASE("sequences of ops equal their ops' definitions", "[cpu]") {
  // Close to the exact value, whatever is contracted: well-conditioned sequences.
  const auto gelu = kernel("gelu", [](In<f32, 1> in, Out<f32, 1> out) {
    const Tile x = load(in, {0}, {1537});
    store(out, {0}, 0.5f * x * (1.0f + tanh(0.7978845608f * (x + 0.044715f * x * x * x))));
  });
  const auto gate = kernel("gate", [](In<f32, 1> in, Out<f32, 1> out) {
    const Tile x = load(in, {0}, {1537});
    store(out, {0}, x * sigmoid(x) - sigmoid2(3 * x));
  });
  const auto waves = kernel("waves", [](In<f32, 1> in, Out<f32, 1> out) {
    const Tile x = load(in, {0}, {1537});
    const Tile y = exp(-abs(x)) + sqrt(x * x + 1), z = log(1 + exp2(x)) * rsqrt(2 + abs(x));
    store(out, {0}, where(((x > 0) & (y > 1.5)) | !(z <= 1), y / z, maximum(y, z) - minimum(-y, -z)));
  });
  oracle::Rng rng(6);
  std::vector<float> x(1537);
  for (float& v : x) v = oracle::between(rng, -4.0f, 4.0f);
  const auto check = [&](const auto& k, const auto& exact) {
    const std::vector<float> y = launch_on(k, x);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double wanted = exact(static_cast<double>(x[i]));
      wrong += !(std::abs(y[i] - wanted) <= 2e-6 * std::max(1.0, std::abs(wanted)));
    }
    CHECK(wrong == 0);
  };
  check(gelu, [](double v) { return 0.5 * v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v))); });
  check(gate, [](double v) { return v / (1 + std::exp(-v)) - 1 / (1 + std::exp2(-3 * v)); });
  check(waves, [](double v) {
    const double y = std::exp(-std::abs(v)) + std::sqrt(v * v + 1),
                 z = std::log(1 + std::exp2(v)) / std::sqrt(2 + std::abs(v));
    return (v > 0 && y > 1.5) || !(z <= 1) ? y / z : std::max(y, z) - std::min(-y, -z);
  });
}

TEST_CASE("a long sequence of integer ops, with values used again late", "[cpu]") {
  const auto k = kernel("hash", [](In<i32, 2> in, In<i32, 1> salt, Out<i32, 2> out, Out<i32, 2> middle) {
    const Tile x = load(in, {0, 0}, {7, 211});
    const Tile s = load(salt, {0}, {211});
    Tile a = x * 0x2C1B3C6D + s;
    Tile b = a % 0x12345 - (a / 77) * s;
    Tile c = where((b < a) | (s == x), b * a, -b);
    Tile d = maximum(minimum(c, a + 5), b - s % 17) + cast<i32>(cast<i64>(c) * cast<i64>(a) / 65536);
    store(middle, {0, 0}, c);
    store(out, {0, 0}, d * x - abs(a) + c / (b % 3) + where(!(d > b), 1, -1));
  });
  oracle::Rng rng(7);
  const Array x = oracle::random_bits_array(rng, ElementType::i32, {7, 211});
  const Array s = oracle::random_bits_array(rng, ElementType::i32, {211});
  const Device& device = test_device();
  Tensor<i32, 2> in(device, {7, 211}), out(device, {7, 211}), middle(device, {7, 211});
  Tensor<i32, 1> salt(device, {211});
  in.copy_from(std::vector<i32>(x.whole.begin(), x.whole.end()));
  salt.copy_from(std::vector<i32>(s.whole.begin(), s.whole.end()));
  out.copy_from(std::vector<i32>(x.size(), -77));
  middle.copy_from(std::vector<i32>(x.size(), -77));
  launch(device.stream(), k, in, salt, out, middle);
  const auto i32_of = [](oracle::Wide v) { return oracle::wrapped(v, ElementType::i32); };
  const auto div = [](oracle::Wide v, oracle::Wide w) { return oracle::binary(Op::floor_div, v, w); };
  const auto mod = [](oracle::Wide v, oracle::Wide w) { return oracle::binary(Op::modulo, v, w); };
  std::size_t wrong = 0;
  const std::vector<i32> got = out.to_vector(), got_middle = middle.to_vector();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const oracle::Wide v = x.whole[i], t = s.whole[i % 211];
    const oracle::Wide a = i32_of(v * 0x2C1B3C6D + t);
    const oracle::Wide b = i32_of(mod(a, 0x12345) - i32_of(div(a, 77) * t));
    const oracle::Wide c = b < a || t == v ? i32_of(b * a) : i32_of(-b);
    const oracle::Wide clamped =
        std::max<oracle::Wide>(std::min<oracle::Wide>(c, i32_of(a + 5)), i32_of(b - mod(t, 17)));
    const oracle::Wide d = i32_of(clamped + i32_of(div(c * a, 65536)));
    const oracle::Wide e = d * v - i32_of(a < 0 ? -a : a) + i32_of(div(c, mod(b, 3))) + (d > b ? -1 : 1);
    wrong += got[i] != i32_of(e) || got_middle[i] != i32_of(c);
  }
  CHECK(wrong == 0);
}

TEST_CASE("select takes every element type", "[cpu]") {
  Cases cases(56);
  oracle::Rng rng(8);
  const std::array<Extents, 3> broadcast_shapes[] = {
      {Extents{7}, {7}, {7}},           {Extents{3, 1}, {3, 5}, {5}},      {Extents{}, {16, 33}, {33}},
      {Extents{1537}, {}, {1}},         {Extents{2, 3, 1, 5}, {4, 1}, {}}, {Extents{}, {}, {}},
      {Extents{1, 211}, {7, 1}, {1, 1}}};
  for (ElementType type : all_types) {
    for (const auto& [c, x, y] : broadcast_shapes) {
      if (cases.skip()) continue;
      INFO(name(type) << " where " << oracle::text_of(c) << " " << oracle::text_of(x) << " else "
                      << oracle::text_of(y));
      const bool small = type == ElementType::pred || type == ElementType::u8;
      const Array condition = oracle::random_array(rng, ElementType::pred, c, 0, 1);
      const Array a = oracle::random_array(rng, type, x, small ? 0 : -100, small ? 1 : 100);
      const Array b = oracle::random_array(rng, type, y, small ? 0 : -100, small ? 1 : 100);
      const Array expected = oracle::select(condition, a, b);
      CHECK(oracle::difference(oracle::evaluate({condition, a, b}, expected,
                                                [&](const Values& v) { return oracle::apply(Op::select, type, v); }),
                               expected) == "");
    }
  }
  SECTION("NaN and infinity on either side") {
    const Array a = special_array(ElementType::f32);
    const Array condition = oracle::random_array(rng, ElementType::pred, a.shape, 0, 1);
    const Array b = oracle::reals({}, {oracle::real_nan});
    for (const auto& [x, y] : {std::pair{a, b}, {b, a}}) {
      CHECK(oracle::difference(
                oracle::evaluate({condition, x, y}, a,
                                 [&](const Values& v) { return oracle::apply(Op::select, ElementType::f32, v); }),
                oracle::select(condition, x, y)) == "");
    }
  }
}

// Conversions
// ------------------------------------------------------------------------------------------------------------

}  // namespace test_ops_elementwise
