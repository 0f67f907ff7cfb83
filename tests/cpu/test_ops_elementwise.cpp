// Elementwise ops against the fine print of ops.def: every op, every element type, shapes that no vector width divides,
// broadcasting, literals, special values, accuracy, conversions, random numbers.
#include <cfloat>
#include <set>

#include "support/catch.hpp"
#include "support/oracle.hpp"
#include "support/support.hpp"

namespace test_ops_elementwise {

using namespace tessera::internal;
using oracle::Array;
using oracle::Extents;
using oracle::Real;
using oracle::Values;

namespace {

struct TableOp {
  Op op;
  double low, high, tolerance;
};
constexpr TableOp unary_ops[] = {
#define UNARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {Op::name, low, high, tolerance},
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
};
constexpr TableOp binary_ops[] = {
#define UNARY(...)
#define BINARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {Op::name, low, high, tolerance},
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
};
constexpr TableOp ternary_ops[] = {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {Op::name, low, high, tolerance},
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
};

constexpr ElementType all_types[] = {
#define TYPE(name, ...) ElementType::name,
#include "tessera/graph/types.def"
};

const Extents shapes[] = {{},        {1},          {7},       {3, 5},          {16, 33},
                          {5, 1, 7}, {2, 3, 4, 5}, {1, 1, 1}, {1, 1, 1, 9},    {1537},
                          {29, 53},  {31, 1},      {1, 64},   {2, 1, 3, 2, 5}, {3, 2, 1, 2, 3, 3}};

double tolerance_of(Op op) {
  for (const auto& t : unary_ops)
    if (t.op == op) return t.tolerance;
  for (const auto& t : binary_ops)
    if (t.op == op) return t.tolerance;
  for (const auto& t : ternary_ops)
    if (t.op == op) return t.tolerance;
  return 0;
}

Array on_device(Op op, const Array& a) {
  const Array like(result_type(op, a.type), a.shape);
  return oracle::evaluate({a}, like, [&](const Values& x) { return oracle::apply_unary(op, x[0]); });
}
Array on_device(Op op, const Array& a, const Array& b) {
  const Array like(result_type(op, a.type), oracle::common_shape(a.shape, b.shape).value());
  return oracle::evaluate({a, b}, like, [&](const Values& x) { return oracle::apply_binary(op, x[0], x[1]); });
}
Array on_device(Op op, const Array& a, const Array& b, const Array& c) {
  const Extents shape = oracle::common_shape(oracle::common_shape(a.shape, b.shape).value(), c.shape).value();
  return oracle::evaluate({a, b, c}, Array(result_type(op, a.type), shape),
                          [&](const Values& x) { return oracle::apply_ternary(op, x[0], x[1], x[2]); });
}
std::string difference(Op op, const Array& a, const Array& b, const Array& c) {
  const Array exact = oracle::ternary(op, a, b, c);
  return oracle::difference(on_device(op, a, b, c), exact, tolerance_of(op));
}
std::string difference(Op op, const Array& a) {
  const Array exact = oracle::unary(op, a);
  // Results of exp2 and sigmoid2 that are subnormal, possibly after rounding, may be 0.
  std::vector<Real> bound(op == Op::exp2 || op == Op::sigmoid2 || has_absolute_tolerance(op) ? exact.size() : 0);
  for (std::size_t i = 0; i < bound.size(); ++i)
    if (has_absolute_tolerance(op)) {
      const bool wave = op != Op::log2_approx;
      const Real size = std::abs(a.real[i]);
      bound[i] = !wave || size <= 6.28L ? tolerance_of(op) : size <= 314 ? 4e-5L : 2;
    } else if (exact.real[i] < FLT_MIN * (1 + tolerance_of(op))) bound[i] = exact.real[i];
  return oracle::difference(on_device(op, a), exact, tolerance_of(op), bound);
}
std::string difference(Op op, const Array& a, const Array& b) {
  // How a 32-bit word becomes a number is the implementation's choice, as long as it uses the upper bits.
  const std::vector<Real> bound(
      op == Op::random_uniform ? oracle::size_of(oracle::common_shape(a.shape, b.shape).value()) : 0, 0x1p-23L);
  return oracle::difference(on_device(op, a, b), oracle::binary(op, a, b), tolerance_of(op), bound);
}

const std::vector<Real> special_reals = {0.0L,
                                         -0.0L,
                                         1,
                                         -1,
                                         0.5L,
                                         -2,
                                         3,
                                         16777216,
                                         -16777217.0f,
                                         FLT_MAX,
                                         -FLT_MAX,
                                         FLT_MIN,
                                         -FLT_MIN,
                                         FLT_MIN / 2,
                                         0x1p-149L,
                                         -0x1p-149L,
                                         0x1.fffffep-1L,
                                         0x1.000002p0L,
                                         88,
                                         -103,
                                         oracle::real_inf,
                                         -oracle::real_inf,
                                         oracle::real_nan};

Array special_array(ElementType type) {
  if (oracle::is_real(type))
    return oracle::cast(oracle::reals({static_cast<int>(special_reals.size())}, special_reals), type);
  std::vector<i64> values;
  for (i64 x = -7; x <= 7; ++x) values.push_back(x);
  for (i64 x = 0; x < 3; ++x) {
    values.push_back(oracle::lowest_of(type) + x);
    values.push_back(oracle::highest_of(type) - x);
    values.push_back(oracle::wrapped(oracle::highest_number(type) / 2 + x, type));
  }
  for (i64& x : values) x = oracle::wrapped(x, type);
  const int size = static_cast<int>(values.size());
  return oracle::wholes(type, {size}, values);
}

constexpr ElementType wide_types[] = {ElementType::f32, ElementType::f64, ElementType::i32,
                                      ElementType::i64, ElementType::u32, ElementType::u64};

/// Which of the special values are constants: one of three for types without a sign, as there are so many kernels.
std::size_t step_of(ElementType type) { return type == ElementType::u32 || type == ElementType::u64 ? 3 : 1; }

/// An element of an array as a constant of the kernel being traced.
oracle::Value constant_of(const Array& a, std::size_t i) {
  if (oracle::is_real(a.type)) return oracle::literal(a.type, static_cast<double>(a.real[i]));
  if (a.type == ElementType::u64) return oracle::literal(a.type, static_cast<std::uint64_t>(a.whole[i]));
  return oracle::literal(a.type, a.whole[i]);
}

std::vector<float> launch_on(const auto& k, const std::vector<float>& x) {
  const Device& device = test_device();
  Tensor<f32, 1> in(device, {static_cast<i64>(x.size())}), out(device, {static_cast<i64>(x.size())});
  in.copy_from(x);
  out.copy_from(std::vector<float>(x.size(), NAN));
  launch(device.stream(), k, in, out);
  return out.to_vector();
}

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

TEST_CASE("special values", "[cpu]") {
  Cases cases(4000);
  for (ElementType type : wide_types) {
    const Array a = special_array(type);
    const Array column = oracle::reshape(a, {static_cast<int>(a.size()), 1});
    for (const TableOp& t : unary_ops) {
      if (!accepts(t.op, type)) continue;
      if (t.op == Op::rsqrt) continue;  // for -0 either infinity is valid: see below
      INFO(name(t.op) << " of " << name(type));
      CHECK(difference(t.op, a) == "");
    }
    for (const TableOp& t : binary_ops) {
      if (!accepts(t.op, type)) continue;
      INFO(name(t.op) << " of " << name(type));
      CHECK(difference(t.op, column, a) == "");
      // Again with one operand a constant of the kernel, on either side.
      for (std::size_t i = 0; i < a.size(); i += step_of(type)) {
        if (cases.skip()) continue;
        INFO("with constant " << a.as_real(i));
        Array one(type, {});
        one.take(0, a, i);
        const auto constant = [&] { return constant_of(a, i); };
        const bool exact = t.op != Op::random_uniform;
        const std::vector<Real> bound(exact ? 0 : a.size(), 0x1p-23L);
        const Array like(result_type(t.op, type), a.shape);
        CHECK(oracle::difference(
                  oracle::evaluate({a}, like,
                                   [&](const Values& x) { return oracle::apply_binary(t.op, x[0], constant()); }),
                  oracle::binary(t.op, a, one), t.tolerance, bound) == "");
        CHECK(oracle::difference(
                  oracle::evaluate({a}, like,
                                   [&](const Values& x) { return oracle::apply_binary(t.op, constant(), x[0]); }),
                  oracle::binary(t.op, one, a), t.tolerance, bound) == "");
      }
    }
  }
  SECTION("rsqrt") {
    const Array a = oracle::reals({6}, {0.0L, -1, -oracle::real_inf, oracle::real_inf, oracle::real_nan, -0x1p-149L});
    CHECK(difference(Op::rsqrt, a) == "");
    CHECK(std::isinf(on_device(Op::rsqrt, oracle::reals({1}, {-0.0L})).real[0]));
  }
  SECTION("the sign of zero in neg, abs and mul") {
    const Array zeros = oracle::reals({2}, {0.0L, -0.0L});
    const Array negated = on_device(Op::neg, zeros), absolute = on_device(Op::abs, zeros);
    CHECK(std::signbit(negated.real[0]));
    CHECK(!std::signbit(negated.real[1]));
    CHECK(!std::signbit(absolute.real[0]));
    CHECK(!std::signbit(absolute.real[1]));
    const Array product = on_device(Op::mul, zeros, oracle::reals({2}, {-3, -3}));
    CHECK(std::signbit(product.real[0]));
    CHECK(!std::signbit(product.real[1]));
  }
}

TEST_CASE("special values of three operands", "[cpu]") {
  Cases cases(240);
  for (ElementType type : wide_types) {
    const Array a = special_array(type);
    const int count = static_cast<int>(a.size());
    const Array column = oracle::reshape(a, {count, 1}), deep = oracle::reshape(a, {count, 1, 1});
    for (const TableOp& t : ternary_ops) {
      if (!accepts(t.op, type)) continue;
      INFO(name(t.op) << " of " << name(type));
      if (!cases.skip()) CHECK(difference(t.op, deep, column, a) == "");
      // Again with two of three operands constants of the kernel, in all combinations.
      for (std::size_t i = 0; i < a.size(); ++i) {
        const std::size_t j = (i * 5 + 3) % a.size();
        const int place = static_cast<int>(i % 3);
        if (cases.skip()) continue;
        INFO("operand " << place << " beside constants " << a.as_real(i) << " and " << a.as_real(j));
        Array one(type, {}), other(type, {});
        one.take(0, a, i), other.take(0, a, j);
        const Array expected = place == 0   ? oracle::ternary(t.op, a, one, other)
                               : place == 1 ? oracle::ternary(t.op, one, a, other)
                                            : oracle::ternary(t.op, one, other, a);
        CHECK(oracle::difference(oracle::evaluate(
                                     {a}, Array(type, a.shape),
                                     [&](const Values& x) {
          const oracle::Value u = constant_of(a, i), v = constant_of(a, j);
          return place == 0   ? oracle::apply_ternary(t.op, x[0], u, v)
                 : place == 1 ? oracle::apply_ternary(t.op, u, x[0], v)
                              : oracle::apply_ternary(t.op, u, v, x[0]);
                                     }),
                                 expected, t.tolerance) == "");
      }
      // And all three.
      if (cases.skip()) continue;
      std::vector<Array> wanted;
      for (std::size_t i = 0; i < a.size(); ++i) {
        Array x(type, {}), y(type, {}), z(type, {});
        x.take(0, a, i), y.take(0, a, (i * 7 + 1) % a.size()), z.take(0, a, (i * 3 + 2) % a.size());
        wanted.push_back(oracle::ternary(t.op, x, y, z));
      }
      const std::vector<Array> folded = oracle::evaluate({}, wanted, [&](const Values&) {
        Values out;
        for (std::size_t i = 0; i < a.size(); ++i)
          out.push_back(oracle::apply_ternary(t.op, constant_of(a, i), constant_of(a, (i * 7 + 1) % a.size()),
                                              constant_of(a, (i * 3 + 2) % a.size())));
        return out;
      });
      for (std::size_t i = 0; i < a.size(); ++i) {
        INFO("of constants, the first " << a.as_real(i));
        CHECK(oracle::difference(folded[i], wanted[i], t.tolerance) == "");
      }
    }
    if (cases.skip()) continue;
    INFO("where of " << name(type));
    const Array condition = oracle::wholes(ElementType::pred, {2, 1, 1}, {1, 0});
    const Array expected = oracle::select(condition, column, a);
    CHECK(oracle::difference(oracle::evaluate({condition, column, a}, expected,
                                              [&](const Values& v) { return oracle::apply(Op::select, type, v); }),
                             expected) == "");
    for (const bool holds : {false, true}) {  // once as a constant, and with a constant condition, too
      const Array known = oracle::select(oracle::wholes(ElementType::pred, {1}, {holds}), a, deep);
      CHECK(oracle::difference(oracle::evaluate(
                                   {a, deep}, known,
                                   [&](const Values& v) {
        return oracle::apply(Op::select, type, {oracle::literal(ElementType::pred, holds ? 1 : 0), v[0], v[1]});
                                   }),
                               known) == "");
    }
  }
  SECTION("fma rounds once where its product overflows, or determines the sign of a zero") {
    const Array x = oracle::reals({6}, {FLT_MAX, FLT_MAX, -0.0L, 0, oracle::real_inf, 0x1p-149L});
    const Array y = oracle::reals({6}, {2, 2, 5, -5, 0, 0.5L});
    const Array z = oracle::reals({6}, {-FLT_MAX, -oracle::real_inf, -0.0L, 0, 1, 0x1p-149L});
    const Array got = on_device(Op::fma, x, y, z);
    CHECK(got.real[0] == FLT_MAX);
    CHECK(got.real[1] == -oracle::real_inf);
    CHECK((got.real[2] == 0 && std::signbit(got.real[2])));
    CHECK((got.real[3] == 0 && !std::signbit(got.real[3])));
    CHECK(std::isnan(got.real[4]));
    CHECK(got.real[5] == 0x1p-148L);  // 1.5 times the smallest, to even
  }
}

TEST_CASE("ops whose operands and results are constants", "[cpu]") {
  Cases cases(1700);
  for (ElementType type : wide_types) {
    const Array a = special_array(type);
    const auto constant = [&](std::size_t i) { return constant_of(a, i); };
    for (const TableOp& t : unary_ops) {
      if (!accepts(t.op, type) || t.op == Op::rsqrt) continue;
      INFO(name(t.op) << " of " << name(type));
      const std::vector<Array> results =
          oracle::evaluate({}, std::vector<Array>(a.size(), Array(result_type(t.op, type), {})), [&](const Values&) {
            Values out;
            for (std::size_t i = 0; i < a.size(); ++i) out.push_back(oracle::apply_unary(t.op, constant(i)));
            return out;
          });
      const Array expected = oracle::unary(t.op, a);
      for (std::size_t i = 0; i < a.size(); ++i) {
        Array one(expected.type, {});
        one.take(0, expected, i);
        CHECK(oracle::difference(results[i], one, t.tolerance) == "");
      }
    }
    for (const TableOp& t : binary_ops) {
      if (!accepts(t.op, type) || t.op == Op::random_uniform) continue;
      const Array expected = oracle::binary(t.op, oracle::reshape(a, {static_cast<int>(a.size()), 1}), a);
      for (std::size_t i = 0; i < a.size(); i += step_of(type)) {
        if (cases.skip()) continue;
        INFO(name(t.op) << " of " << name(type) << " " << a.as_real(i) << " and the others");
        const ElementType result = result_type(t.op, type);
        const std::vector<Array> results =
            oracle::evaluate({}, std::vector<Array>(a.size(), Array(result, {})), [&](const Values&) {
              Values out;
              for (std::size_t j = 0; j < a.size(); ++j)
                out.push_back(oracle::apply_binary(t.op, constant(i), constant(j)));
              return out;
            });
        Array row(result, a.shape), wanted(result, a.shape);
        for (std::size_t j = 0; j < a.size(); ++j) {
          row.take(j, results[j], 0);
          wanted.take(j, expected, i * a.size() + j);
        }
        CHECK(oracle::difference(row, wanted, t.tolerance) == "");
      }
    }
  }
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

TEST_CASE("accuracy over the whole domain and at its edges", "[cpu]") {
  Cases cases(30);
  struct Sweep {
    Op op;
    double low, high;
  };
  oracle::Rng rng(5);
  const auto next = [](std::vector<Real>& values, float x) {  // x and its neighbors
    values.push_back(x);
    values.push_back(std::nextafter(x, 1e38f));
    values.push_back(std::nextafter(x, -1e38f));
  };
  for (const Sweep& s : {Sweep{Op::exp, -104.5, 89},
                         Sweep{Op::exp, -1, 1},
                         Sweep{Op::exp2, -151, 128.5},
                         Sweep{Op::exp2, -1, 1},
                         Sweep{Op::log, 1e-45, 3.4e38},
                         Sweep{Op::log, 0.5, 2},
                         Sweep{Op::log, 0.999, 1.001},
                         Sweep{Op::tanh, -10, 10},
                         Sweep{Op::tanh, -0.7, 0.7},
                         Sweep{Op::tanh, 1e-40, 1},
                         Sweep{Op::tanh_approx, -10, 10},
                         Sweep{Op::tanh_approx, 1e-40, 1},
                         Sweep{Op::sin_approx, -6.28, 6.28},
                         Sweep{Op::cos_approx, -314, 314},
                         Sweep{Op::log2_approx, 1e-45, 3.4e38},
                         Sweep{Op::log2_approx, 0.5, 2},
                         Sweep{Op::sqrt_approx, 1e-45, 3.4e38},
                         Sweep{Op::sigmoid2, -151, 128.5},
                         Sweep{Op::sigmoid2, -1, 1},
                         Sweep{Op::sqrt, 0, 1e6},
                         Sweep{Op::sqrt, 1e-45, 3.4e38},
                         Sweep{Op::rsqrt, 1e-6, 1e6},
                         Sweep{Op::rsqrt, 1e-45, 3.4e38},
                         Sweep{Op::exp, 1e-44, 1},
                         Sweep{Op::exp2, 1e-44, 1},
                         Sweep{Op::expm1, -20, 89},
                         Sweep{Op::expm1, 1e-44, 1},
                         Sweep{Op::log2, 1e-45, 3.4e38},
                         Sweep{Op::log2, 0.5, 2},
                         Sweep{Op::log10, 1e-45, 3.4e38},
                         Sweep{Op::log10, 0.5, 2},
                         Sweep{Op::log1p, -1, 1},
                         Sweep{Op::log1p, 1e-45, 3.4e38},
                         Sweep{Op::sin, -100, 100},
                         Sweep{Op::sin, 1e-45, 3.4e38},
                         Sweep{Op::cos, -100, 100},
                         Sweep{Op::cos, 1e-45, 3.4e38},
                         Sweep{Op::tan, -100, 100},
                         Sweep{Op::tan, 1e-45, 3.4e38},
                         Sweep{Op::asin, -1, 1},
                         Sweep{Op::asin, 1e-45, 1},
                         Sweep{Op::acos, -1, 1},
                         Sweep{Op::atan, -10, 10},
                         Sweep{Op::atan, 1e-45, 3.4e38},
                         Sweep{Op::sinh, -90, 90},
                         Sweep{Op::sinh, 1e-45, 1},
                         Sweep{Op::cosh, -90, 90},
                         Sweep{Op::erf, -4, 4},
                         Sweep{Op::erf, 1e-45, 1},
                         Sweep{Op::erfc, -4, 10.1},
                         Sweep{Op::cbrt, -9, 9},
                         Sweep{Op::cbrt, 1e-45, 3.4e38}}) {
    if (cases.skip()) continue;
    INFO(name(s.op) << " in [" << s.low << ", " << s.high << "]");
    CHECK(difference(s.op, oracle::random_array(rng, ElementType::f32, {60001}, s.low, s.high)) == "");
  }
  std::vector<Real> edges;
  for (float x : {88.72283f,   88.3762626647949f,
                  -87.33654f,  -103.97208f,
                  -103.27893f, 127.0f,
                  128.0f,      -126.0f,
                  -149.0f,     -150.0f,
                  -125.0f,     1e30f,
                  -1e30f,      9.01f,
                  -9.01f,      20.0f,
                  0.625f,      1e-4f,
                  1.0f,        2.0f,
                  0.70710678f, 1.41421356f,
                  0.69314718f, 0.34657359f})
    next(edges, x);
  for (int i = -160; i <= 140; ++i) next(edges, static_cast<float>(i));
  for (int i = -149; i <= 127; ++i) next(edges, std::ldexp(1.0f, i));
  for (float x : {0.75f, 0.8f, 2.4142137f, 0.41421357f, 1.5707964f, 3.1415927f, 4.712389f, 89.415985f, 10.0546f, 2.5f,
                  8388608.0f})
    next(edges, x), next(edges, -x);
  // Near multiples of pi / 2, to all known bits of 2 / pi.
  for (float x : {0x1.f9cbe2p+7f, 0x1.47d0fep+34f, 0x1.0f79ap+57f, 0x1.f37c8ap+95f, 0x1.f37c8ap+96f, 0x1.7b9b4p+126f})
    next(edges, x), next(edges, -x);
  const Array a = oracle::reals({static_cast<int>(edges.size())}, edges);
  for (const TableOp& t : unary_ops) {
    const Op op = t.op;
    if (!accepts(op, ElementType::f32)) continue;
    if (cases.skip()) continue;
    INFO(name(op) << " at edges");
    Array b = a;
    if (op == Op::rsqrt)
      for (Real& x : b.real) x += x == 0;
    CHECK(difference(op, b) == "");
  }
  SECTION("arithmetic, including subnormal and overflowing results") {
    for (Op op : {Op::add, Op::sub, Op::mul, Op::div}) {
      INFO(name(op));
      CHECK(difference(op, oracle::random_array(rng, ElementType::f32, {20001}, 1e-45, 3.4e38),
                       oracle::random_array(rng, ElementType::f32, {20001}, 1e-45, 3.4e38)) == "");
      CHECK(difference(op, oracle::random_array(rng, ElementType::f32, {20001}, -1e-37, 1e-37),
                       oracle::random_array(rng, ElementType::f32, {20001}, -2, 2)) == "");
    }
  }
  SECTION("powers and angles") {
    for (const auto& [low, high] : {std::pair{0.5, 2.0}, {1e-45, 3.4e38}}) {
      INFO("of [" << low << ", " << high << "]");
      const auto random = [&](double l, double h) {
        return oracle::random_array(rng, ElementType::f32, {20001}, l, h);
      };
      const Array x = random(low, high);
      CHECK(difference(Op::pow, x, random(-130, 130)) == "");
      CHECK(difference(Op::pow, x, random(-1, 1)) == "");
      CHECK(difference(Op::atan2, x, random(-high, high)) == "");
      CHECK(difference(Op::atan2, random(-high, high), x) == "");
    }
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

TEST_CASE("activations", "[cpu]") {
  oracle::Rng rng(8);
  std::vector<float> x(1537);
  for (float& v : x) v = oracle::between(rng, -9.0f, 9.0f);
  x[0] = INFINITY, x[1] = 0, x[2] = 1e-30f, x[3] = -1e-30f;
  const auto check = [&](const auto& activation, const auto& exact) {
    const std::vector<float> y =
        launch_on(kernel("activation",
                         [&](In<f32, 1> in, Out<f32, 1> out) { store(out, {0}, activation(load(in, {0}, {1537}))); }),
                  x);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double v = static_cast<double>(x[i]), wanted = std::isinf(v) ? v : exact(v);
      wrong += !(y[i] == wanted || std::abs(y[i] - wanted) <= 1e-6 * std::abs(v));
    }
    CHECK(wrong == 0);
  };
  check([](const auto& v) { return silu(v); }, [](double v) { return v / (1 + std::exp(-v)); });
  check([](const auto& v) { return gelu(v); }, [](double v) { return v / 2 * (1 + std::erf(v * std::sqrt(0.5))); });
  check([](const auto& v) { return gelu_tanh(v); },
        [](double v) { return v / 2 * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))); });
}

TEST_CASE("activations and means of f64 are as accurate as their type", "[cpu]") {
  constexpr int rows = 7, columns = 219, size = rows * columns;
  const auto k = kernel("activations",
                        [](In<f64, 2> x, Out<f64, 3> y, Out<f64, 2> by_row, Out<f64, 2> by_column, Out<f64, 1> whole) {
    const Tile t = load(x, {0, 0}, {rows, columns});
    store(y, {0, 0, 0}, expand_dims(silu(t), 0));
    store(y, {1, 0, 0}, expand_dims(gelu(t), 0));
    store(y, {2, 0, 0}, expand_dims(gelu_tanh(t), 0));
    store(y, {3, 0, 0}, expand_dims(sigmoid(t), 0));
    store(by_row, {0, 0}, mean(t, 1));
    store(by_column, {0, 0}, mean(t, axis(0)));
    store(whole, {0}, reshape(mean(t), {1}));
  });
  oracle::Rng rng(16);
  std::vector<f64> x(size);
  for (f64& v : x) v = oracle::between(rng, -9.0, 9.0);
  x[0] = 700, x[1] = 0, x[2] = 1e-300, x[3] = -1e-30, x[4] = -40, x[5] = 40;
  const Device& device = test_device();
  Tensor<f64, 2> in(device, {rows, columns}), by_row(device, {rows, 1}), by_column(device, {1, columns});
  Tensor<f64, 3> out(device, {4, rows, columns});
  Tensor<f64, 1> whole(device, {1});
  in.copy_from(x);
  out.copy_from(std::vector<f64>(4 * size, NAN));
  launch(device.stream(), k, in, out, by_row, by_column, whole);
  const std::vector<f64> y = out.to_vector();
  const auto check = [&](int which, const char* name, const auto& exact) {
    std::size_t wrong = 0;
    std::ostringstream first;
    for (std::size_t i = 0; i < size; ++i) {
      const Real v = x[i], wanted = exact(v), got = y[static_cast<std::size_t>(which) * size + i];
      // As for f32, times 2^-29; for sigmoid relative to its value, plus the rounding error of the exponent.
      const Real allowed = which == 3 ? (2 + std::abs(v)) * 0x1p-52L * wanted : 1e-6L * 0x1p-29L * std::abs(v);
      if (std::abs(got - wanted) <= std::max<Real>(allowed, 0x1p-1074L)) continue;
      if (wrong++ == 0) first << name << " of " << v << " is " << got << ", not " << wanted;
    }
    INFO(first.str());
    CHECK(wrong == 0);
  };
  const auto sigmoid_of = [](Real v) { return 1 / (1 + std::exp(-v)); };
  check(0, "silu", [&](Real v) { return v * sigmoid_of(v); });
  check(1, "gelu", [](Real v) { return v / 2 * std::erfc(-v * std::sqrt(0.5L)); });
  check(2, "gelu_tanh", [&](Real v) {
    return v * sigmoid_of(2 * std::sqrt(2 / 3.14159265358979323846L) * (v + 0.044715L * v * v * v));
  });
  check(3, "sigmoid", sigmoid_of);
  const auto close = [&](f64 got, const std::vector<f64>& of) {
    Real sum = 0, size_of_all = 0;
    for (const f64 v : of) sum += v, size_of_all += std::abs(Real(v));
    const auto n = static_cast<Real>(of.size());
    INFO(got << ", not " << sum / n);
    CHECK(std::abs(got - sum / n) <= (n + 2) * size_of_all / n * 0x1p-53L);
  };
  const std::vector<f64> means = by_row.to_vector(), others = by_column.to_vector();
  for (std::size_t i = 0; i < rows; ++i)
    close(means[i], {x.begin() + static_cast<std::ptrdiff_t>(i * columns),
                     x.begin() + static_cast<std::ptrdiff_t>((i + 1) * columns)});
  for (std::size_t j = 0; j < columns; ++j) {
    std::vector<f64> line;
    for (std::size_t i = 0; i < rows; ++i) line.push_back(x[i * columns + j]);
    close(others[j], line);
  }
  close(whole.to_vector()[0], x);
}

TEST_CASE("a bitcast keeps the bits, in memory and of constants", "[cpu]") {
  const Device& device = test_device();
  const std::vector<float> x = {0, -0.0f, 1, -1.5f, FLT_MAX, FLT_MIN, 1e-45f, INFINITY, -INFINITY};
  constexpr int n = 9;
  Tensor<f32, 1> in(device, {n}), back(device, {n});
  Tensor<i32, 1> bits(device, {n}), folded(device, {2});
  Tensor<f16, 1> half(device, {n});
  Tensor<bf16, 1> other(device, {n});
  Tensor<f16, 1> same(device, {n});
  in.copy_from(x);
  std::vector<f16> halves;
  for (const int i : {0x0000, 0x8000, 0x3c00, 0x7bff, 0x0001, 0x03ff, 0xfc00, 0x7c00, 0xc001}) {
    halves.emplace_back();
    halves.back().bits = static_cast<std::uint16_t>(i);
  }
  half.copy_from(halves);
  const auto k = kernel("bits", [](In<f32, 1> v, In<f16, 1> h, Out<i32, 1> b, Out<f32, 1> r, Out<bf16, 1> o,
                                   Out<f16, 1> s, Out<i32, 1> f) {
    const Tile number = bitcast<i32>(load(v, {0}, {n}));
    store(b, {0}, number);
    store(r, {0}, bitcast<f32>(number ^ (-2147483647 - 1)));  // flips the sign
    const Tile rest = load(h, {0}, {n});
    store(o, {0}, bitcast<bf16>(rest));
    store(s, {0}, bitcast<f16>(bitcast<bf16>(rest)));
    store(f, {0}, concat(0, bitcast<i32>(full<f32>({1}, -2)), cast<i32>(bitcast<f32>(full<i32>({1}, 0x41100000)))));
  });
  launch(device.stream(), k, in, half, bits, back, other, same, folded);
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(bits.to_vector()[i] == std::bit_cast<i32>(x[i]));
    CHECK(std::bit_cast<i32>(back.to_vector()[i]) == std::bit_cast<i32>(-x[i]));
    CHECK(other.to_vector()[i].bits == halves[i].bits);
    CHECK(same.to_vector()[i].bits == halves[i].bits);
  }
  CHECK(folded.to_vector() == std::vector<i32>{-0x40000000, 9});
}

TEST_CASE("zeros keep their sign where the function is odd", "[cpu]") {
  const Array zeros = oracle::reals({2}, {0.0L, -0.0L});
  for (Op op : {Op::expm1, Op::log1p, Op::sin, Op::tan, Op::asin, Op::atan, Op::sinh, Op::erf, Op::cbrt, Op::floor,
                Op::ceil, Op::trunc, Op::round, Op::sign}) {
    INFO(name(op));
    const Array result = on_device(op, zeros);
    CHECK((result.real[0] == 0 && !std::signbit(result.real[0])));
    CHECK((result.real[1] == 0 && std::signbit(result.real[1])));
  }
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

namespace {

/// Values of a type for which conversions may go wrong.
Array awkward(oracle::Rng& rng, ElementType type) {
  if (!oracle::is_real(type)) {
    Array a = oracle::random_bits_array(rng, type, {1537});
    if (info(type).computes) {
      // Near the limits of exact floats, near ties of f32, f16 and bf16, and near the ranges of narrower integers.
      std::size_t at = 0;
      for (int bit : {7, 8, 9, 11, 12, 15, 16, 24, 25, 26, 30, 31, 32, 33, 40, 53, 54, 62})
        for (i64 delta = -4; delta <= 4; ++delta)
          for (i64 sign : {1, -1}) a.whole[at++] = oracle::wrapped(sign * ((i64{1} << bit) + delta), type);
      for (i64 x : {65503, 65504, 65519, 65520, 65521, 65536, 16777217, 33554434, 33554435, 2049, 2051, 257, 259})
        a.whole[at++] = x;
    }
    return a;
  }
  std::vector<Real> values = special_reals;
  for (ElementType other : {ElementType::f16, ElementType::bf16, ElementType::tf32, ElementType::f8e4m3,
                            ElementType::f8e5m2, ElementType::f32}) {
    const oracle::Format format = oracle::format_of(other);
    for (int exponent :
         {format.lowest - format.fraction - 2, format.lowest - format.fraction - 1, format.lowest - format.fraction,
          format.lowest - 3, format.lowest - 1, format.lowest, -3, 0, 5, format.highest - 1, format.highest}) {
      for (int step : {0, 1, 2, 3, 62, 63, 126, 127, (1 << format.fraction) - 2, (1 << format.fraction) - 1}) {
        // A number of the format, the tie after it, and the neighboring f32.
        const Real scale = std::ldexp(Real(1), std::max(exponent, format.lowest) - format.fraction);
        const Real number = std::ldexp(Real(1), exponent) + scale * step, tie = number + scale / 2;
        for (Real x : {number, tie, tie - scale / 64, tie + scale / 64, tie - std::ldexp(scale, -28),
                       tie + std::ldexp(scale, -28), -tie, -number})
          values.push_back(x);
      }
    }
  }
  for (Real x : {255.0L,
                 255.5L,
                 256.0L,
                 254.99L,
                 0.99L,
                 -0.99L,
                 -1.0L,
                 2147483647.0L,
                 2147483648.0L,
                 2147483520.0L,
                 -2147483648.0L,
                 -2147483904.0L,
                 9223372036854775807.0L,
                 9223371487098961920.0L,
                 -9223372036854775808.0L,
                 1e20L,
                 -1e20L,
                 65504.0L,
                 65519.0L,
                 65519.996L,
                 65520.0L,
                 -65520.0L,
                 1.5L,
                 2.5L,
                 -1.5L,
                 1e-8L})
    values.push_back(x);
  while (values.size() < 5000)
    values.push_back(oracle::number_of(rng(), oracle::chance(rng, 50) ? ElementType::f32 : ElementType::f64));
  Array a(type, {static_cast<int>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) a.real[i] = oracle::rounded(values[i], type);
  return a;
}

}  // namespace

TEST_CASE("cast between all pairs of element types", "[cpu]") {
  Cases cases(64);
  oracle::Rng rng(9);
  for (ElementType from : all_types) {
    const Array a = awkward(rng, from);
    for (ElementType to : all_types) {
      if (cases.skip()) continue;
      INFO(name(from) << " to " << name(to));
      const Array expected = oracle::cast(a, to);
      CHECK(oracle::difference(
                oracle::evaluate({a}, expected, [&](const Values& x) { return oracle::apply_cast(x[0], to); }),
                expected) == "");
    }
  }
}

TEST_CASE("cast of constants between all pairs of element types", "[cpu]") {
  Cases cases(24);
  oracle::Rng rng(10);
  for (ElementType from : {ElementType::f32, ElementType::f64, ElementType::i32, ElementType::i64, ElementType::u32}) {
    const Array all = awkward(rng, from);
    for (ElementType to : all_types) {
      if (cases.skip()) continue;
      INFO(name(from) << " to " << name(to));
      std::vector<std::size_t> chosen;
      for (std::size_t i = 0; i < 30; ++i) chosen.push_back(oracle::between<std::size_t>(rng, 0, all.size() - 1));
      for (std::size_t i = 0; i < 23; ++i) chosen.push_back(i);
      const std::vector<Array> results =
          oracle::evaluate({}, std::vector<Array>(chosen.size(), Array(to, {})), [&](const Values&) {
            Values out;
            for (std::size_t i : chosen)
              out.push_back(oracle::apply_cast(oracle::is_real(from)
                                                   ? oracle::literal(from, static_cast<double>(all.real[i]))
                                                   : oracle::literal(from, all.whole[i]),
                                               to));
            return out;
          });
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        Array one(from, {});
        one.take(0, all, chosen[i]);
        INFO("of " << all.as_real(chosen[i]));
        CHECK(oracle::difference(results[i], oracle::cast(one, to)) == "");
      }
    }
  }
}

namespace {

template <class T>
void check_patterns() {
  constexpr int count = 1 << (8 * sizeof(T));
  const auto k = kernel("patterns", [](In<T, 1> in, Out<f32, 1> wide, Out<T, 1> back) {
    const Tile x = cast<f32>(load(in, {0}, {1 << (8 * sizeof(T))}));
    store(wide, {0}, x);
    store(back, {0}, cast<T>(x));
  });
  const Device& device = test_device();
  Tensor<T, 1> in(device, {count}), back(device, {count});
  Tensor<f32, 1> wide(device, {count});
  std::vector<T> patterns(count);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i].bits = static_cast<decltype(T::bits)>(i);
  in.copy_from(patterns);
  back.copy_from(std::vector<T>(count));
  wide.copy_from(std::vector<f32>(count, 12345.0f));
  launch(device.stream(), k, in, wide, back);
  const std::vector<f32> w = wide.to_vector();
  const std::vector<T> b = back.to_vector();
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Real exact = oracle::number_of(i, element_type<T>);
    if (std::isnan(exact))
      wrong += !std::isnan(w[i]) || !std::isnan(oracle::number_of(b[i].bits, element_type<T>));
    else
      wrong += Real(w[i]) != exact || std::signbit(w[i]) != std::signbit(exact) || b[i].bits != i;
    const T host(w[i]);  // the host's conversion agrees
    wrong += !std::isnan(exact) && (host.bits != i || static_cast<float>(host) != w[i]);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every number of 8 and 16 bits converts to every other type, by its value and by its bits", "[cpu]") {
  Cases cases(12);
  for (ElementType from : all_types) {
    if (!info(from).stored || info(from).bytes > 2) continue;
    const int bits = 8 * info(from).bytes;
    Array a(from, {1 << bits});
    for (int i = 0; i < 1 << bits; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (oracle::is_real(from))
        a.real[at] = oracle::number_of(static_cast<std::uint32_t>(i), from);
      else
        a.whole[at] = oracle::wrapped(i, from);
    }
    for (ElementType to : all_types) {
      if (cases.skip()) continue;
      INFO(name(from) << " to " << name(to));
      const Array expected = oracle::cast(a, to);
      CHECK(oracle::difference(
                oracle::evaluate({a}, expected, [&](const Values& x) { return oracle::apply_cast(x[0], to); }),
                expected) == "");
    }
  }
}

TEST_CASE("all patterns of f16, bf16, f8e4m3 and f8e5m2 convert to f32 and back", "[cpu]") {
  check_patterns<f8e4m3>();
  check_patterns<f8e5m2>();
  check_patterns<f16>();
  check_patterns<bf16>();
}

TEST_CASE("f32 is narrowed to the nearest number, ties to even", "[cpu]") {
  oracle::Rng rng(11);
  std::vector<Real> values;
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += 65521 - bits % 7)
    values.push_back(oracle::number_of(static_cast<std::uint32_t>(bits), ElementType::f32));
  for (std::uint32_t i = 0; i < 0x7c00; i += 3)  // every third tie between neighbors of f16, and numbers around it
    for (int delta : {-1, 0, 1}) {
      const Real tie = (oracle::number_of(i, ElementType::f16) +
                        (i == 0x7bff ? 65536 : oracle::number_of(i + 1, ElementType::f16))) /
                       2;
      const std::uint64_t bits = oracle::bits_of(tie, ElementType::f32) + static_cast<std::uint64_t>(delta);
      values.push_back(oracle::number_of(bits, ElementType::f32));
    }
  for (std::uint32_t i = 0; i < 0x10000; i += 5)
    for (std::uint32_t low : {0x7fffu, 0x8000u, 0x8001u})
      values.push_back(oracle::number_of(i << 16 | low, ElementType::f32));
  const Array a = oracle::reals({static_cast<int>(values.size())}, values);
  for (ElementType to :
       {ElementType::f16, ElementType::bf16, ElementType::tf32, ElementType::f8e4m3, ElementType::f8e5m2}) {
    INFO(name(to));
    const Array expected = oracle::cast(a, to);
    CHECK(oracle::difference(
              oracle::evaluate({a}, expected, [&](const Values& x) { return oracle::apply_cast(x[0], to); }),
              expected) == "");
    // The host's own conversions.
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float x = static_cast<float>(values[i]);
      if (std::isnan(x) || to == ElementType::tf32) continue;
      const int bits = to == ElementType::f16      ? f16(x).bits
                       : to == ElementType::bf16   ? bf16(x).bits
                       : to == ElementType::f8e4m3 ? f8e4m3(x).bits
                                                   : f8e5m2(x).bits;
      wrong += static_cast<std::uint64_t>(bits) != oracle::bits_of(oracle::rounded(x, to), to);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("tf32 of NaN has the bits 0x7fffe000", "[cpu]") {
  const auto k = kernel(
      "tf32", [](In<f32, 1> in, Out<f32, 1> out) { store(out, {0}, cast<f32>(cast<tf32>(load(in, {0}, {6})))); });
  const Device& device = test_device();
  Tensor<f32, 1> in(device, {6}), out(device, {6});
  const std::uint32_t patterns[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0x7fffffff, 0xffffffff, 0x7fa01234};
  std::vector<float> values(6);
  std::memcpy(values.data(), patterns, sizeof patterns);
  in.copy_from(values);
  launch(device.stream(), k, in, out);
  std::uint32_t results[6];
  std::memcpy(results, out.to_vector().data(), sizeof results);
  for (std::uint32_t bits : results) CHECK(bits == 0x7fffe000);
}

TEST_CASE("a cast to a narrow type and back rounds within an expression", "[cpu]") {
  oracle::Rng rng(12);
  const Array a = oracle::random_array(rng, ElementType::f32, {1537}, -300, 300);
  for (ElementType through :
       {ElementType::f16, ElementType::bf16, ElementType::tf32, ElementType::f8e4m3, ElementType::f8e5m2,
        ElementType::f64, ElementType::i8, ElementType::u8, ElementType::i16, ElementType::u16, ElementType::i32,
        ElementType::u32, ElementType::u64, ElementType::pred}) {
    INFO("through " << name(through));
    const Array expected = oracle::cast(oracle::cast(oracle::unary(Op::neg, a), through), ElementType::f32);
    CHECK(oracle::difference(oracle::evaluate(
                                 {a}, expected,
                                 [&](const Values& x) {
      return oracle::apply_cast(oracle::apply_cast(oracle::apply_unary(Op::neg, x[0]), through), ElementType::f32);
                                 }),
                             expected) == "");
  }
  SECTION("integers through narrower ones") {
    const Array b = oracle::random_bits_array(rng, ElementType::i64, {1537});
    for (ElementType through :
         {ElementType::i32, ElementType::i8, ElementType::i16, ElementType::u8, ElementType::u16, ElementType::u32,
          ElementType::u64, ElementType::pred, ElementType::f32, ElementType::f16}) {
      INFO("through " << name(through));
      const Array expected = oracle::cast(oracle::cast(b, through), ElementType::i64);
      CHECK(oracle::difference(oracle::evaluate(
                                   {b}, expected,
                                   [&](const Values& x) {
        return oracle::apply_cast(oracle::apply_cast(x[0], through), ElementType::i64);
                                   }),
                               expected) == "");
    }
  }
}

// Random numbers
// ---------------------------------------------------------------------------------------------------------

TEST_CASE("random numbers are Philox 4x32-10", "[cpu]") {
  // Random123's known answers for all-zero and all-one counters and keys: the test's own Philox is right.
  CHECK(oracle::philox({0, 0, 0, 0}, {0, 0}) ==
        std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(oracle::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});

  const auto k = kernel("random", [](Out<i32, 1> bits, Out<f32, 1> uniform, Scalar<i64> key, Scalar<i64> first) {
    const Tile index = first + cast<i64>(iota({4}, 0));
    store(bits, {0}, random_bits(key, index));
    store(uniform, {0}, random_uniform(key, index));
  });
  const Device& device = test_device();
  Tensor<i32, 1> bits(device, {4});
  Tensor<f32, 1> uniform(device, {4});
  launch(device.stream(), k, bits, uniform, 0, 0);
  CHECK(bits.to_vector() == std::vector<i32>{0x6627e8d5, static_cast<i32>(0xe169c58d), static_cast<i32>(0xbc57ac4c),
                                             static_cast<i32>(0x9b00dbd8)});
  oracle::Rng rng(13);
  for (ElementType type : {ElementType::i64}) {
    const Array key = oracle::random_bits_array(rng, type, {61, 1}),
                index = oracle::random_bits_array(rng, type, {1, 67});
    CHECK(difference(Op::random_bits, key, index) == "");
    CHECK(difference(Op::random_uniform, key, index) == "");
  }
}

TEST_CASE("random_uniform is strictly inside (0, 1), and uniform", "[cpu]") {
  constexpr int size = 250'000;
  const auto k = kernel("uniform", [](Out<f32, 1> out, Out<i32, 1> bits, Scalar<i64> key) {
    const Tile index = cast<i64>(iota({size}, 0));
    store(out, {0}, random_uniform(key, index));
    store(bits, {0}, random_bits(key, index));
  });
  const Device& device = test_device();
  Tensor<f32, 1> out(device, {size});
  Tensor<i32, 1> bits(device, {size});
  for (i64 key : {i64{0}, i64{42}, i64{-1}, i64{1} << 40}) {
    INFO("key " << key);
    launch(device.stream(), k, out, bits, key);
    double sum = 0, squares = 0, products = 0, last = 0.5;
    float low = 1, high = 0;
    for (float u : out.to_vector()) {
      low = std::min(low, u), high = std::max(high, u);
      sum += u, squares += (u - 0.5) * (u - 0.5), products += (u - 0.5) * (last - 0.5);
      last = u;
    }
    CHECK(low > 0);
    CHECK(high < 1);
    CHECK(low < 1e-4);
    CHECK(high > 1 - 1e-4);
    CHECK(std::abs(sum / size - 0.5) < 5 * std::sqrt(1 / 12.0 / size));
    CHECK(std::abs(squares / size - 1 / 12.0) < 5 * std::sqrt(1 / 180.0 / size));
    CHECK(std::abs(products / size) < 5 * (1 / 12.0) / std::sqrt(size));
    const std::vector<i32> words = bits.to_vector();
    const std::set<i32> distinct(words.begin(), words.end());
    CHECK(distinct.size() > size - 40);  // 7 collisions expected
    std::array<int, 32> ones{};
    for (i32 word : words)
      for (int bit = 0; bit < 32; ++bit) ones[bit] += word >> bit & 1;
    for (int count : ones) CHECK(std::abs(count - size / 2) < 5 * std::sqrt(size) / 2);
  }
  SECTION("words near the ends do not round to 0 or 1") {
    // Words with many leading ones or zeros, found by search with the test's Philox.
    std::vector<i64> extremes;
    for (i64 index = 0; index < 12'000'000 && extremes.size() < 24; index += 4) {
      const auto words = oracle::philox({static_cast<std::uint32_t>(index / 4), 0, 0, 0}, {7, 0});
      for (i64 word = 0; word < 4; ++word)
        if (words[word] >= 0xfffffa00u || words[word] < 0x400) extremes.push_back(index + word);
    }
    REQUIRE(extremes.size() > 0);
    const Array index = oracle::wholes(ElementType::i64, {static_cast<int>(extremes.size())}, extremes);
    const Array key = oracle::wholes(ElementType::i64, {}, {7});
    for (Real u : on_device(Op::random_uniform, key, index).real) {
      CHECK(u > 0);
      CHECK(u < 1);
    }
  }
}

}  // namespace test_ops_elementwise
