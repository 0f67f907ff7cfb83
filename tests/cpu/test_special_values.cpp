// Elementwise ops of special values, as data and as constants.
#include <cfloat>

#include "support/catch.hpp"
#include "support/element_ops.hpp"

namespace test_special_values {

using namespace tessera::internal;
using namespace element_ops;

namespace {

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

}  // namespace

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
        CHECK(oracle::difference(oracle::evaluate({a}, Array(type, a.shape),
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
      CHECK(oracle::difference(oracle::evaluate({a, deep}, known,
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

}  // namespace test_special_values
