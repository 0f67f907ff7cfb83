// The reference for whole graphs: its expectations, computed by hand; that the CPU executor satisfies them; and that
// results just outside of them are detected.
#include <climits>
#include <cmath>

#include "reference/reference.hpp"
#include "reference/tile.hpp"
#include "support/catch.hpp"
#include "support/oracle.hpp"
#include "support/support.hpp"
#include "support/tensors.hpp"

namespace test_reference {

using namespace tessera::internal;
using oracle::Array;
using oracle::Extents;
using oracle::Real;
using oracle::real_inf;
using oracle::real_nan;
using oracle::Rng;
using oracle::Value;
using oracle::Values;
using Interval = reference::Element;

namespace {

constexpr Real largest = 0x1.fffffep127L;

Interval real(Op op, Interval a, Interval b) { return reference::binary(op, ElementType::f32, a, b); }
Interval real(Op op, Real a, Real b) { return real(op, Interval::of(a), Interval::of(b)); }
Interval real(Op op, Interval a) { return reference::unary(op, ElementType::f32, a); }
Interval real(Op op, Real a) { return real(op, Interval::of(a)); }
Interval narrowed(Interval a, ElementType to) { return reference::cast(ElementType::f32, to, a); }

bool is(const Interval& a, Real x) { return std::isnan(x) ? a.empty() && a.nan : a.exact() && a.low == x; }
bool is(const Interval& a, Real low, Real high, bool nan = false) {
  return a.low == low && a.high == high && a.nan == nan;
}
bool is_anything(const Interval& a) { return is(a, -real_inf, real_inf, true); }

Interval sum_of(std::initializer_list<Interval> terms) {
  reference::Sum sum(ElementType::f32);
  for (const Interval& term : terms) sum.add(term);
  return sum.value();
}
Interval sum_of(std::initializer_list<Real> terms) {
  reference::Sum sum(ElementType::f32);
  for (Real term : terms) sum.add(Interval::of(term));
  return sum.value();
}

}  // namespace

// Single elements, by hand
// ------------------------------------------------------------------------------------------------------------

TEST_CASE("results that f32 holds exactly are exact, others within the tolerance", "[reference]") {
  CHECK(is(real(Op::add, 1, 2), 3));
  CHECK(is(real(Op::mul, 4097, -4095), -16777215));
  CHECK(is(real(Op::sub, 0x1p-149L, 0x1p-148L), -0x1p-149L));
  CHECK(is(real(Op::add, 1, 0x1p-30L), 1));
  CHECK(is(real(Op::add, 0x1p24L, 1), 0x1p24L, 0x1p24L + 2));
  CHECK(is(real(Op::neg, Interval{1, 2}), -2, -1));
  CHECK(is(real(Op::abs, Interval{-3, 2}), 0, 3));
  CHECK(is(real(Op::sqrt, 0), 0));

  const Interval e = real(Op::exp, 1);
  CHECK(e.may_be(static_cast<float>(std::exp(1.0L))));
  CHECK((e.low > 2.7182809L && e.high < 2.7182828L));

  // A value that is never negative stays so, and its root is a number.
  CHECK(real(Op::exp, -200).low == 0);
  CHECK(!real(Op::sqrt, real(Op::exp, -200)).nan);
  CHECK(!real(Op::log, real(Op::sqrt, Interval{0, 1})).nan);
  CHECK(real(Op::tanh, 50).high == 1);
  CHECK(real(Op::tanh, -50).low == -1);
  CHECK((real(Op::exp2, -126).low == 0 && real(Op::exp2, -130).high > 0x1.fp-131L && real(Op::exp2, -125).low > 0));
  CHECK(real(Op::sigmoid2, 50).high == 1);
  CHECK((real(Op::sigmoid2, -125).low > 0x1.ffffep-126L && real(Op::sigmoid2, -125).high < 0x1.00001p-125L));
  CHECK((real(Op::sigmoid2, -126).low == 0 && real(Op::sigmoid2, -130).high > 0x1.fp-131L));
}

TEST_CASE("a product that is added to something may keep all its digits", "[reference]") {
  const Interval square = real(Op::mul, 1 + 0x1p-23L, 1 + 0x1p-23L);
  const Interval rest = real(Op::sub, square, Interval::of(1 + 0x1p-22L));
  CHECK((rest.may_be(0) && rest.may_be(0x1p-46L) && !rest.may_be(0x1p-22L)));
}

TEST_CASE("overflow and subnormal results", "[reference]") {
  CHECK(is(real(Op::add, largest, largest), real_inf));
  const Interval product = real(Op::mul, -0x1p100L, 0x1p100L);
  CHECK((product.may_be(-real_inf) && !product.may_be(-largest)));
  const Interval near = real(Op::add, largest, 0x1p102L);
  CHECK((near.may_be(largest) && near.may_be(real_inf) && !near.nan));
  const Interval tiny = real(Op::mul, 0x1p-100L, 0x1p-60L);
  CHECK((tiny.may_be(0) && !tiny.may_be(0x1p-149L)));
  CHECK(is(real(Op::exp, 1000), real_inf));
  CHECK(is(narrowed(Interval::of(65519), ElementType::f16), 65504));
  CHECK(is(narrowed(Interval::of(65520), ElementType::f16), real_inf));
}

TEST_CASE("NaN, certain or possible", "[reference]") {
  CHECK(is(real(Op::sub, real_inf, real_inf), real_nan));
  CHECK(is(real(Op::mul, 0, real_inf), real_nan));
  CHECK(is(real(Op::mul, Interval{0, 1}, Interval::of(real_inf)), 0, real_inf, true));
  CHECK(is(real(Op::div, 0, 0), real_nan));
  CHECK(is(real(Op::div, 1, 0), -real_inf, real_inf));  // zeros have either sign
  CHECK(is(real(Op::add, real_nan, 1), real_nan));
  CHECK(is(real(Op::sqrt, -1), real_nan));
  CHECK(real(Op::sqrt, Interval{-0.1L, 4}).nan);
  CHECK(is(real(Op::log, 0), -real_inf));
  CHECK(is(real(Op::minimum, real_nan, 3), 3));
  CHECK(is(real(Op::maximum, 3, real_nan), 3));
  CHECK(is(real(Op::minimum, real_nan, real_nan), real_nan));
  CHECK(is(real(Op::minimum, Interval{5, 6, true}, Interval::of(3)), 3));
  CHECK(is(real(Op::maximum, Interval{5, 6, true}, Interval::of(3)), 3, 6));
  CHECK(is(real(Op::minimum_nan, real_nan, 3), real_nan));
  CHECK(is(real(Op::maximum_nan, Interval{5, 6, true}, Interval::of(3)), 5, 6, true));
  for (Op op : {Op::less, Op::less_equal, Op::greater, Op::greater_equal, Op::equal})
    CHECK(is(real(op, real_nan, 1), 0));
  CHECK(is(real(Op::not_equal, real_nan, real_nan), 1));
  CHECK(is(narrowed(Interval::of(real_nan), ElementType::i32), 0));
  CHECK(is(narrowed(Interval::of(real_nan), ElementType::pred), 1));
}

TEST_CASE("a comparison of values that may be equal is undetermined, and so is what depends on it", "[reference]") {
  const Interval a{1, 2}, b{2, 3}, open{0, 1};
  CHECK(is(real(Op::less, a, b), 0, 1));
  CHECK(is(real(Op::less_equal, a, b), 1));
  CHECK(is(real(Op::greater, a, b), 0));
  CHECK(is(real(Op::equal, a, b), 0, 1));
  CHECK(is(real(Op::equal, a, Interval::of(4)), 0));
  CHECK(is(real(Op::less, Interval{0, 1, true}, b), 0, 1));
  CHECK(is(reference::select(open, a, b), 1, 3));
  CHECK(is(reference::select(Interval::of(0), a, b), 2, 3));
  CHECK(is(reference::binary(Op::logical_and, ElementType::pred, open, Interval::of(0)), 0));
  CHECK(is(reference::binary(Op::logical_or, ElementType::pred, open, Interval::of(0)), 0, 1));
  CHECK(is(reference::unary(Op::logical_not, ElementType::pred, Interval::of(0)), 1));
}

TEST_CASE("casts of exact and of inexact numbers", "[reference]") {
  const auto bf16 = [](Interval a) { return narrowed(a, ElementType::bf16); };
  CHECK(is(bf16(Interval::of(1 + 0x1p-8L)), 1));  // a tie goes to even
  CHECK(is(bf16(Interval{1 + 0x1p-8L - 0x1p-23L, 1 + 0x1p-8L + 0x1p-23L}), 1, 1 + 0x1p-7L));
  CHECK(is(narrowed(Interval{1.9L, 2.1L}, ElementType::i32), 1, 2));
  CHECK(is(narrowed(Interval{-1.9L, -1.1L}, ElementType::i32), -1));
  CHECK(is(narrowed(Interval::of(3e9L), ElementType::i32), INT_MAX));
  CHECK(is(narrowed(Interval::of(-7), ElementType::u8), 0));
  CHECK(is(narrowed(Interval::of(real_inf), ElementType::i64), Real(LLONG_MAX)));
  CHECK(is(narrowed(Interval{-1, 1}, ElementType::pred), 0, 1));
  CHECK(is(reference::cast(ElementType::i64, ElementType::i32, Interval::of(0x1p32L + 5)), 5));
  CHECK(is(reference::cast(ElementType::i32, ElementType::u8, Interval::of(-1)), 255));
  CHECK(is(reference::cast(ElementType::i64, ElementType::f32, Interval::of(16777217)), 16777216));
  CHECK(is_anything(reference::cast(ElementType::i64, ElementType::i32, Interval{0, 0x1p32L})));
  // The smaller of an unknown number and -630 may be any number below, which wraps to any byte.
  const Interval at_most = reference::cast(ElementType::i32, ElementType::u8, Interval{-real_inf, -630, true});
  CHECK(is_anything(at_most));
  CHECK(is_anything(reference::cast(ElementType::i32, ElementType::u64, Interval{-real_inf, -630, true})));
  CHECK(is_anything(reference::cast(ElementType::u8, ElementType::f32, Interval::anything())));
}

TEST_CASE("integers wrap, and divide as Python's do", "[reference]") {
  const auto i32_of = [](Op op, Real a, Real b) {
    return reference::binary(op, ElementType::i32, Interval::of(a), Interval::of(b));
  };
  CHECK(is(i32_of(Op::add, INT_MAX, 1), INT_MIN));
  CHECK(is(i32_of(Op::floor_div, -7, 2), -4));
  CHECK(is(i32_of(Op::modulo, -7, 2), 1));
  CHECK(is(i32_of(Op::modulo, 7, 0), 0));
  CHECK(is(i32_of(Op::floor_div, INT_MIN, -1), INT_MIN));
  CHECK(is(i32_of(Op::cdiv, 7, 2), 4));
  CHECK(is(i32_of(Op::cdiv, -7, 2), -3));
  CHECK(is(i32_of(Op::cdiv, 7, 0), 0));
  CHECK(is(i32_of(Op::cdiv, INT_MIN, -1), INT_MIN));
  CHECK(is(i32_of(Op::cdiv, INT_MAX, 2), 1073741824));
  CHECK(is(i32_of(Op::cdiv, INT_MIN, 3), 715827883));  // -INT_MIN is INT_MIN
  const auto most = Interval::of(Real(LLONG_MAX));     // (2^63 - 1)^2 = 1 modulo 2^64
  CHECK(is(reference::binary(Op::mul, ElementType::i64, most, most), 1));
  CHECK(is_anything(reference::binary(Op::add, ElementType::i32, Interval{1, 2}, Interval::of(1))));
}

TEST_CASE("functions that rise, fall, or have a turning point", "[reference]") {
  const auto near = [](const Interval& a, Real low, Real high) {
    return std::abs(a.low - low) < 1e-5L && std::abs(a.high - high) < 1e-5L;
  };
  CHECK(near(real(Op::acos, Interval{-1, 1}), 0, std::acos(-1.0L)));
  CHECK(is(real(Op::asin, 1.5L), real_nan));
  CHECK((real(Op::asin, Interval{0.5L, 1.5L}).nan && real(Op::asin, Interval{0.5L, 1.5L}).low > 0.5L));
  CHECK(near(real(Op::erfc, Interval{0, 1}), std::erfc(1.0L), 1));
  CHECK(near(real(Op::cosh, Interval{-2, 1}), 1, std::cosh(2.0L)));
  CHECK((real(Op::log1p, -2).empty() && is(real(Op::log1p, -1), -real_inf)));
  const Interval top = real(Op::sin, Interval{1.5L, 1.6L});
  CHECK((top.may_be(1) && top.low > 0.94L));
  CHECK(is(real(Op::cos, Interval{0, 3}), -1, 1));
  CHECK((real(Op::sin, real_inf).empty() && real(Op::sin, Interval{0, real_inf}).nan));
  CHECK(near(real(Op::tan, Interval{-1, 1}), std::tan(-1.0L), std::tan(1.0L)));
  CHECK(is(real(Op::tan, Interval{1, 2}), -real_inf, real_inf));
  CHECK((is(real(Op::round, 2.5L), 2) && is(real(Op::round, -3.5L), -4) && is(real(Op::round, real_inf), real_inf)));
  CHECK(is(real(Op::floor, Interval{-0.5L, 1.5L}), -1, 1));
  CHECK((is(real(Op::isnan, Interval{1, 2, true}), 0, 1) && is(real(Op::isnan, real_nan), 1)));
  CHECK((is(real(Op::isinf, Interval{1, real_inf}), 0, 1) && is(real(Op::isfinite, Interval{1, 2}), 1)));

  CHECK((is(real(Op::pow, real_nan, 0), 1) && is(real(Op::pow, 1, real_nan), 1)));
  CHECK((real(Op::pow, -8, 0.5L).empty() && is(real(Op::pow, 0, -1), -real_inf, real_inf)));
  CHECK(near(real(Op::pow, Interval{2, 3}, Interval{-1, 2}), 1 / 3.0L, 9));
  CHECK(near(real(Op::atan2, Interval::of(0), Interval{-1, 1}), -std::acos(-1.0L), std::acos(-1.0L)));
  CHECK(near(real(Op::atan2, 1, 1), std::atan(1.0L), std::atan(1.0L)));
  CHECK((is(real(Op::copysign, 3, -2), -3) && is(real(Op::copysign, Interval::of(3), Interval{-1, 1}), -3, 3)));
}

TEST_CASE("bits", "[reference]") {
  const auto i32_of = [](Op op, Real a, Real b) {
    return reference::binary(op, ElementType::i32, Interval::of(a), Interval::of(b));
  };
  CHECK((is(i32_of(Op::shift_left, 3, 30), -0x40000000L) && is(i32_of(Op::shift_left, 1, 32), 0)));
  CHECK((is(i32_of(Op::shift_left, 1, -1), 0) && is(i32_of(Op::shift_right, -9, 2), -3)));
  CHECK((is(i32_of(Op::shift_right, -9, 99), -1) && is(i32_of(Op::shift_right, 9, -1), 0)));
  CHECK((is(i32_of(Op::bitwise_xor, -1, 5), -6) && is(i32_of(Op::bitwise_and, -4, 7), 4)));
  const auto of = [](Op op, ElementType type, Real a) { return reference::unary(op, type, Interval::of(a)); };
  CHECK((is(of(Op::popcount, ElementType::i32, -1), 32) && is(of(Op::popcount, ElementType::i64, -2), 63)));
  CHECK((is(of(Op::clz, ElementType::i32, 0), 32) && is(of(Op::clz, ElementType::i64, 1), 63)));
  const auto cast = [](ElementType from, ElementType to, Interval a) { return reference::bitcast(from, to, a); };
  CHECK(is(cast(ElementType::f32, ElementType::i32, Interval::of(-2)), -0x40000000L));
  CHECK(is(cast(ElementType::i32, ElementType::f32, Interval::of(0x7fc00000)), real_nan));
  CHECK(is(cast(ElementType::f16, ElementType::bf16, Interval::of(1)), 0x1p-7L));  // 0x3c00
  CHECK(is_anything(cast(ElementType::f32, ElementType::i32, Interval::of(0))));   // of either sign
}

TEST_CASE("sums in any order", "[reference]") {
  CHECK(is(sum_of({1.0L, 2.0L, -4.0L, 0.5L}), -0.5L));
  CHECK(is(sum_of({0x1p24L - 1, 1.0L}), 0x1p24L));
  const Interval small = sum_of({1.0L, 0x1p-24L, 0x1p-24L});  // 1, or one ulp above it
  CHECK((small.may_be(1) && small.may_be(1 + 0x1p-23L) && !small.may_be(1 + 3 * 0x1p-23L)));
  const Interval cancelled = sum_of({0x1p24L, 1.0L, -0x1p24L});
  CHECK((cancelled.may_be(0) && cancelled.may_be(1) && cancelled.high < 6));
  CHECK(is(sum_of({real_inf, 1.0L}), real_inf));
  CHECK(is(sum_of({real_inf, -real_inf}), real_nan));
  CHECK(is(sum_of({real_nan, 1.0L}), real_nan));
  CHECK(is(sum_of({largest, largest, 1.0L}), real_inf));
  CHECK(is(sum_of({0x1p127L, 0x1p127L, 0x1p127L}), real_inf));
  CHECK(is_anything(sum_of({largest, largest, -largest, -largest})));
  CHECK(sum_of({largest, largest, -1.0L}).may_be(real_inf));
  CHECK(sum_of({Interval{1, 2}, Interval{3, 4, true}}).nan);
}

TEST_CASE("sums that flush subnormals to 0", "[reference]") {
  reference::Sum sum(ElementType::f32);
  sum.add(Interval::of(0x1p-140L));
  sum.add(Interval::of(0));
  CHECK(is(sum.value(), 0x1p-140L));
  CHECK((sum.value(0, true).may_be(0) && sum.value(0, true).high < 0x1p-123L));
  reference::Sum normal(ElementType::f32);
  normal.add(Interval::of(1));
  normal.add(Interval::of(2));
  CHECK(is(normal.value(0, true), 3));
}

TEST_CASE("matmuls are sums, and two roundings", "[reference]") {
  const auto tile = [](ElementType type, const Shape& shape, Real x) {
    return reference::Tile(type, shape, Interval::of(x));
  };
  const auto one = tile(ElementType::f16, {1, 1}, 1);
  CHECK(is(reference::mma(one, one, tile(ElementType::f32, {1, 1}, 2)).item(), 3));
  CHECK(is(reference::mma(one, one, tile(ElementType::f32, {1, 1}, 0x1p-30L)).item(), 1 - 0x1p-23L, 1 + 0x1p-23L));
  const auto huge = tile(ElementType::bf16, {1, 1}, 0x1p100L);
  CHECK(reference::mma(huge, huge, tile(ElementType::f32, {1, 1}, 1)).item().may_be(real_inf));
}

TEST_CASE("argmax is determined where no other value comes near", "[reference]") {
  const auto argmax = [](std::vector<Interval> elements) {
    reference::Tile tile(ElementType::f32, {static_cast<int>(elements.size())});
    tile.elements = std::move(elements);
    return reference::argmax(tile, 0).item();
  };
  const Interval nan = Interval::of(real_nan), low = Interval::of(-real_inf);
  CHECK(is(argmax({{0, 1}, {2, 3}, {1, 1.5L}}), 1));
  CHECK(is(argmax({{0, 1}, {2, 3}, {2, 3}}), 1, 2));
  CHECK(is(argmax({{0, 2}, {2, 2}, {2, 2}}), 0, 1));
  CHECK(is(argmax({nan, low, low}), 1));
  CHECK(is(argmax({nan, nan}), 0));
  CHECK(is(argmax({{5, 5, true}, {1, 1}}), 0, 1));
}

// Whole kernels
// ---------------------------------------------------------------------------------------------------------------------

namespace {

using Grid = std::vector<std::int64_t>;

template <class A>
Argument argument_of(const A& value) {
  Argument argument;
  if constexpr (std::is_same_v<A, float>)
    argument.scalar.f32 = value;
  else if constexpr (std::is_same_v<A, int>)
    argument.scalar.i32 = value;
  else
    argument = value.argument();
  return argument;
}

/// The elements of one parameter after a launch, as expected.
template <class K, class... A>
std::vector<Interval> expected(std::size_t parameter, const K& kernel, const Grid& grid, const A&... values) {
  const std::array<Argument, sizeof...(A)> arguments{argument_of(values)...};
  return reference::run(kernel.graph(), arguments, grid)[parameter].elements;
}

/// The next larger number of a stored type.
Real above(Real x, ElementType type) {
  if (!oracle::is_real(type)) return x + 1;
  if (x == 0) return oracle::number_of(1, type);
  const std::uint64_t bits = oracle::bits_of(x, type);
  return oracle::number_of(x > 0 ? bits + 1 : bits - 1, type);
}

/// Whether the number is rejected as an element of a dense parameter.
bool found(const Graph& graph, std::span<const Argument> arguments, const std::vector<reference::Tensor>& expected,
           std::size_t parameter, std::size_t element, Real x) {
  const ElementType type = graph.parameters[parameter].type;
  Array value(type, {1});
  if (oracle::is_real(type))
    value.real[0] = x;
  else
    value.whole[0] = oracle::held(x);
  std::byte* at = static_cast<std::byte*>(arguments[parameter].data) + element * info(type).bytes;
  std::array<std::byte, 8> before{};
  std::memcpy(before.data(), at, info(type).bytes);
  oracle::write_element(at, value, 0);
  const bool wrong = !reference::difference(graph, arguments, expected).empty();
  std::memcpy(at, before.data(), info(type).bytes);
  return wrong;
}

/// The first element for which the largest expected number is rejected, or the one above it is not.
std::string unguarded(const Graph& graph, std::span<const Argument> arguments,
                      const std::vector<reference::Tensor>& expected) {
  for (std::size_t p = 0; p < arguments.size(); ++p) {
    const ElementType type = graph.parameters[p].type;
    for (std::size_t i = 0; i < expected[p].elements.size(); ++i) {
      const Interval& element = expected[p].elements[i];
      if (element.empty() || std::isinf(element.high)) continue;
      Real last = oracle::is_real(type) ? oracle::rounded(element.high, type) : element.high;
      if (last > element.high) last = -above(-last, type);
      const bool next = oracle::is_real(type) || last < Real(oracle::highest_number(type));
      if (found(graph, arguments, expected, p, i, last) ||
          (next && !found(graph, arguments, expected, p, i, above(last, type))))
        return "parameter " + std::to_string(p) + ", element " + std::to_string(i);
    }
  }
  return "";
}

/// Deviations of the CPU executor from the reference of the kernel as traced and after the passes; or an element for
/// which a planted fault would not be found.
std::string disagreement(const Executable& kernel, std::span<const Argument> arguments, const Grid& grid) {
  const auto traced = reference::run(kernel.traced(), arguments, grid);
  const auto after_passes = reference::run(kernel.graph(), arguments, grid);
  kernel.launch(Device::cpu().stream(), arguments);
  for (const auto& expected : {traced, after_passes})
    if (std::string wrong = reference::difference(kernel.graph(), arguments, expected); !wrong.empty()) return wrong;
  return unguarded(kernel.graph(), arguments, traced);
}
template <class K, class... A>
std::string disagreement(const K& kernel, const Grid& grid, const A&... values) {
  const std::array<Argument, sizeof...(A)> arguments{argument_of(values)...};
  return disagreement(kernel.executable(), arguments, grid);
}

/// The same for a kernel of tiles of any type: one dense input each, and an output for each returned tile.
std::string disagreement(const std::vector<Array>& inputs, const std::vector<Array>& like,
                         const std::function<Values(const Values&)>& body) {
  std::vector<oracle::Memory> memory;
  for (const Array& a : inputs) memory.push_back(oracle::input(a));
  for (const Array& a : like) memory.push_back(oracle::dense(Access::out, a.type, a.shape));
  std::vector<Parameter> parameters;
  std::vector<Argument> arguments;
  for (oracle::Memory& m : memory) {
    parameters.push_back({m.access, m.type, static_cast<int>(m.extents.size())});
    Argument argument;
    argument.data = m.bytes.data();
    std::copy(m.extents.begin(), m.extents.end(), argument.extent.begin());
    std::copy(m.strides.begin(), m.strides.end(), argument.stride.begin());
    arguments.push_back(argument);
  }
  Trace trace("tiles", parameters, oracle::here());
  Values views, tiles;
  for (std::size_t i = 0; i < memory.size(); ++i)
    views.push_back(oracle::apply(Op::tensor, memory[i].type, {}, {static_cast<std::int64_t>(i)}));
  for (std::size_t i = 0; i < inputs.size(); ++i) tiles.push_back(oracle::load_all(views[i], inputs[i].shape));
  const Values results = body(tiles);
  for (std::size_t i = 0; i < like.size(); ++i)
    oracle::store_all(views[inputs.size() + i], results[i], like[i].shape.size());
  return disagreement(Executable(trace.finish()), arguments, {});
}

template <class T, int R>
Tensor<T, R> on_cpu(const std::array<std::int64_t, R>& extents, const std::vector<T>& values) {
  Tensor<T, R> t(Device::cpu(), extents);
  t.copy_from(values);
  return t;
}
std::vector<float> random_floats(std::size_t size, float low = -2, float high = 2) {
  Rng rng(size);
  std::vector<float> values(size);
  for (float& x : values) x = oracle::between(rng, low, high);
  return values;
}

}  // namespace

TEST_CASE("effects in program order, loops and branches", "[reference]") {
  const auto k = kernel("order", [](InOut<i32, 1> x, Out<i32, 2> seen) {
    Index b = blocks(x.extent(0));
    const Tile before = load(x, {b}, {1});
    store(x, {b}, before * 10);
    const Tile after = load(x, {b}, {1});
    Var total = after;
    for (Index i : range(b)) {
      total = total + i;
      if_(i == 1, [&] { atomic_add(x, {b}, full<i32>({1}, 100)); });
    }
    const Tile last = load(x, {b}, {1});
    store(seen, {b, 0}, reshape(last, {1, 1}));
    store(seen, {b, 1}, reshape(total, {1, 1}));
    store(seen, {b, 2}, zeros<i32>({1, 1}));  // out of range
  });
  const auto x = on_cpu<i32, 1>({4}, {1, 2, 3, 4});
  const auto seen = on_cpu<i32, 2>({4, 2}, std::vector<i32>(8, 77));
  const auto memory = expected(0, k, {4}, x, seen), values = expected(1, k, {4}, x, seen);
  const int at[] = {10, 20, 130, 140}, totals[] = {10, 20, 31, 43};
  for (int b = 0; b < 4; ++b)
    CHECK((is(memory[b], at[b]) && is(values[2 * b], at[b]) && is(values[2 * b + 1], totals[b])));
  CHECK(x.to_vector() == std::vector<i32>{1, 2, 3, 4});
  CHECK(disagreement(k, {4}, x, seen) == "");
}

TEST_CASE("memory that is not stored to is unchanged, and CTAs have no order", "[reference]") {
  const auto k = kernel("blocks", [](InOut<i32, 1> x, InOut<i32, 1> w, Out<i32, 1> y, Out<i32, 2> seen) {
    Index b = blocks(3);
    const Tile next = load(x, {b + 1}, {1}), previous = load(w, {b - 1}, {1});  // which another CTA writes
    if_(b > 0, [&] { store(x, {b}, reshape(b, {1})); });
    store(w, {b}, reshape(b, {1}));
    store(w, {3}, full<i32>({1}, 5));
    store(y, {0}, full<i32>({1}, 5));
    store(y, {1}, reshape(b, {1}));
    store(seen, {b, 0}, reshape(next, {1, 1}));
    store(seen, {b, 1}, reshape(previous, {1, 1}));
  });
  const auto x = on_cpu<i32, 1>({5}, {10, 11, 12, 13, 14}), w = on_cpu<i32, 1>({5}, {20, 21, 22, 23, 24});
  const auto y = on_cpu<i32, 1>({3}, {70, 71, 72});
  const auto seen = on_cpu<i32, 2>({3, 2}, std::vector<i32>(6));
  const auto of = [&](std::size_t parameter) { return expected(parameter, k, {3}, x, w, y, seen); };
  CHECK((is(of(0)[0], 10) && is_anything(of(0)[1]) && is_anything(of(0)[2]) && is(of(0)[3], 13)));
  CHECK((is_anything(of(1)[0]) && is_anything(of(1)[1]) && is(of(1)[2], 2)));
  CHECK((is_anything(of(1)[3]) && is(of(1)[4], 24)));
  CHECK((is(of(2)[0], 5) && is(of(2)[1], 0, 2) && is(of(2)[2], 72)));  // an Out: each CTA may leave its value
  CHECK((is_anything(of(3)[0]) && is_anything(of(3)[2]) && is(of(3)[4], 13)));
  CHECK((is(of(3)[1], 0) && is_anything(of(3)[3]) && is_anything(of(3)[5])));
}

TEST_CASE("views transpose, shift and bound their tensor", "[reference]") {
  const auto k = kernel("views", [](In<i32, 2> x, Out<i32, 2> y) {
    const auto part = x.permute({1, 0}).slice(0, 1, 2);  // columns 1 and 2 as rows
    store(y.permute({1, 0}), {0, 0}, load(part, {0, 0}, {3, 2}, 9));
  });
  const auto x = on_cpu<i32, 2>({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}), y = on_cpu<i32, 2>({2, 3}, std::vector<i32>(6));
  const auto got = expected(1, k, {}, x, y);
  const int values[] = {1, 2, 9, 5, 6, 9};
  for (std::size_t i = 0; i < 6; ++i) CHECK(is(got[i], values[i]));
  CHECK(disagreement(k, {}, x, y) == "");
}

TEST_CASE("atomics of many CTAs accumulate in any order", "[reference]") {
  const auto k = kernel("atomics", [](In<f32, 1> x, InOut<f32, 1> y, InOut<i32, 1> n) {
    Index b = blocks(x.extent(0));
    atomic_add(y, {0}, load(x, {b}, {1}));
    atomic_add(n, {0}, reshape(b, {1}));
    const Tile count = load(n, {0}, {1});
    if_(b == 2, [&] { store(n, {1}, count); });
  });
  const auto n = on_cpu<i32, 1>({2}, {0, 0});
  const auto y = on_cpu<f32, 1>({1}, {100});
  const auto whole = on_cpu<f32, 1>({5}, {1, 2, 3, 4, 5}), fine = on_cpu<f32, 1>({5}, random_floats(5));
  CHECK(is(expected(1, k, {5}, whole, y, n)[0], 115));
  CHECK(is_anything(expected(2, k, {5}, whole, y, n)[0]));  // read while others add
  const Interval sum = expected(1, k, {5}, fine, y, n)[0];
  CHECK((!sum.exact() && sum.high - sum.low < 1e-4L));
  CHECK(disagreement(k, {5}, fine, y, n) == "");
}

TEST_CASE("gathers pad, colliding scatters leave one of the values", "[reference]") {
  const auto k = kernel("rows", [](In<f32, 2> x, In<i32, 1> rows, Out<f32, 2> y, Out<i32, 1> z) {
    const Tile at = load(rows, {0}, {4});
    store(y, {0, 0}, gather(x.slice(0, 1, 2), at, {0}, {2}, 9));
    scatter(z, at, iota({4}, 0) + 1);
  });
  const auto x = on_cpu<f32, 2>({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}), y = on_cpu<f32, 2>({4, 2}, std::vector<f32>(8));
  const auto rows = on_cpu<i32, 1>({4}, {1, -1, 1, 2}), z = on_cpu<i32, 1>({3}, {70, 71, 72});
  const auto gathered = expected(2, k, {}, x, rows, y, z), scattered = expected(3, k, {}, x, rows, y, z);
  const Real values[] = {4, 5, 9, 9, 4, 5, 9, 9};
  for (std::size_t i = 0; i < 8; ++i) CHECK(is(gathered[i], values[i]));
  CHECK((is(scattered[0], 70) && is(scattered[1], 1, 3) && is(scattered[2], 4)));
  CHECK(disagreement(k, {}, x, rows, y, z) == "");
}

TEST_CASE("where rounding decides, any outcome is allowed, and only there", "[reference]") {
  const auto k = kernel("open", [](In<f32, 1> x, Out<i32, 1> by_index, Out<i32, 1> by_count, Out<i32, 1> by_branch,
                                   Out<i32, 1> by_value, Out<i32, 1> apart) {
    const Tile third = item(load(x, {0}, {1})) / 3;  // for 3: 1, or a little less
    Index one = cast<i32>(third);
    store(by_index, {one}, full<i32>({1}, 5));
    Var turns = constant<i32>(0);
    for (Index i : range(one)) {
      turns = turns + 1;
      store(by_count, {i}, full<i32>({1}, 5));
    }
    if_(third < 1, [&] { store(by_branch, {0}, full<i32>({1}, 5)); });
    store(by_value, {0}, reshape(turns, {1}));
    if_(third < 2, [&] { store(apart, {0}, full<i32>({1}, 5)); });
  });
  const auto x = on_cpu<f32, 1>({1}, {3});
  const auto out = [] { return on_cpu<i32, 1>({2}, {70, 71}); };
  const auto a = out(), b = out(), c = out(), d = out(), e = out();
  for (std::size_t p = 1; p < 4; ++p) CHECK(is_anything(expected(p, k, {}, x, a, b, c, d, e)[1]));
  const auto values = expected(4, k, {}, x, a, b, c, d, e), apart = expected(5, k, {}, x, a, b, c, d, e);
  CHECK((is_anything(values[0]) && is(values[1], 71) && is(apart[0], 5) && is(apart[1], 71)));
}

TEST_CASE("a launch that the kernel rejects is rejected", "[reference]") {
  const auto k = kernel("refuse", [](In<f32, 1> x, Out<f32, 1> y, Scalar<i32> n) {
    require(x.extent(0) == n * 2, "x has two for each");
    store(y, {0}, load(x, {0}, {4}));
  });
  const auto x = on_cpu<f32, 1>({4}, {1, 2, 3, 4}), y = on_cpu<f32, 1>({4}, {0, 0, 0, 0});
  CHECK(disagreement(k, {}, x, y, 2) == "");
  CHECK(says(error_of([&] { expected(1, k, {}, x, y, 3); }), {"'refuse' refused", "x has two for each"}));
}

TEST_CASE("a difference is reported with its index", "[reference]") {
  const auto k = kernel("place", [](In<f32, 2> x, Out<f32, 2> y) {
    store(y, {0, 0}, load(x, {0, 0}, {2, 3}) + 0.25f);
  });
  const auto x = on_cpu<f32, 2>({2, 3}, std::vector<f32>(6, 0.5f)), y = on_cpu<f32, 2>({2, 3}, std::vector<f32>(6));
  const std::array arguments{x.argument(), y.argument()};
  const auto expected = reference::run(k.graph(), arguments, {});
  launch(Device::cpu().stream(), k, x, y);
  CHECK(reference::difference(k.graph(), arguments, expected) == "");
  y.data()[5] = NAN;
  CHECK(reference::difference(k.graph(), arguments, expected) == "parameter 1 [1,2]: nan, expected 0.75");
}

TEST_CASE("the reference reports each CTA", "[reference]") {
  const auto k = kernel("told", [](tessera::internal::Out<i32, 1> y) {
    Index m = blocks(cdiv(y.extent(0), 2));
    store(y, {m}, full<i32>({2}, 7));
  });
  const auto y = on_cpu<i32, 1>({10}, std::vector<i32>(10));
  int blocks = 0;
  reference::run(k.graph(), std::array{y.argument()}, std::vector<std::int64_t>{5}, [&] { ++blocks; });
  CHECK(blocks == 5);
}

// The CPU executor
// ------------------------------------------------------------------------------------------------------------------

TEST_CASE("the CPU agrees with the reference: every elementwise op and reduction", "[reference]") {
  Rng rng(1);
  const Extents shape{3, 5}, row{5};
  for (int index = 0; index <= static_cast<int>(Op::all); ++index) {
    const Op op = static_cast<Op>(index);
    for (ElementType type :
         {ElementType::f32, ElementType::f64, ElementType::i32, ElementType::i64, ElementType::u32, ElementType::u64}) {
      if (!accepts(op, type)) continue;
      INFO(name(op) << " of " << name(type));
      const auto random = [&](const Extents& extents) {
        return oracle::is_real(type) ? oracle::random_array(rng, type, extents, -30, 30)
                                     : oracle::random_bits_array(rng, type, extents);
      };
      ElementType result = is_reduction(op) ? type : result_type(op, type);
      const bool logical = result == ElementType::pred;
      if (logical) result = ElementType::u8;
      const Extents out = is_reduction(op) ? Extents{3, 1} : shape;
      CHECK(disagreement({random(shape), random(row)}, {Array(result, out)}, [&](const Values& x) {
              const Value value = is_unary(op)     ? oracle::apply_unary(op, x[0])
                                  : is_binary(op)  ? oracle::apply_binary(op, x[0], x[1])
                                  : is_ternary(op) ? oracle::apply_ternary(op, x[0], x[1], x[0])
                                                   : oracle::apply(op, type, {x[0]}, {1});
              return Values{logical ? oracle::apply_cast(value, result) : value};
            }) == "");
    }
  }
}

TEST_CASE("the CPU agrees with the reference: casts, matmuls and ops that move elements", "[reference]") {
  Rng rng(2);
  const ElementType stored[] = {ElementType::f32,    ElementType::f64,    ElementType::f16, ElementType::bf16,
                                ElementType::f8e4m3, ElementType::f8e5m2, ElementType::i8,  ElementType::i16,
                                ElementType::i32,    ElementType::i64,    ElementType::u8,  ElementType::u16,
                                ElementType::u32,    ElementType::u64};
  for (ElementType from : stored)
    for (ElementType to : stored) {
      INFO(name(from) << " to " << name(to));
      const Array a = oracle::is_real(from) ? oracle::random_array(rng, from, {4, 4}, -300, 300)
                                            : oracle::random_bits_array(rng, from, {4, 4});
      CHECK(disagreement({a}, {Array(to, {2, 4, 4})}, [&](const Values& x) {
        const Value transposed = oracle::apply(Op::permute, from, {x[0]}, {1, 0});
        const Value both = oracle::apply(Op::concat, from, {x[0], transposed}, {0});
        return Values{oracle::apply_reshape(oracle::apply_cast(both, to), {2, 4, 4})};
      }) == "");
    }
  for (ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::tf32}) {
    INFO("mma of " << name(type));
    const ElementType held = type == ElementType::tf32 ? ElementType::f32 : type;
    const auto random = [&](ElementType t, Extents shape) { return oracle::random_array(rng, t, shape, -1, 1); };
    CHECK(disagreement({random(held, {5, 19}), random(held, {19, 7}), random(ElementType::f32, {5, 7})},
                       {Array(ElementType::f32, {5, 7}), Array(ElementType::i32, {5, 1})}, [&](const Values& x) {
                         const Value product =
                             oracle::apply(Op::mma, ElementType::f32,
                                           {oracle::apply_cast(x[0], type), oracle::apply_cast(x[1], type), x[2]});
                         return Values{product, oracle::apply(Op::argmax, ElementType::i32, {product}, {1})};
                       }) == "");
  }
}

TEST_CASE("the CPU agrees with the reference: kernels", "[reference]") {
  const auto softmax = kernel("softmax", [](In<f32, 2> x, Out<f32, 2> y) {
    Index row = blocks(x.extent(0));
    const Tile t = load(x, {row, 0}, {1, 32}, -INFINITY);
    const Tile e = exp(t - max(t, 1));
    store(y, {row, 0}, e / sum(e, 1));
  });
  const auto x = on_cpu<f32, 2>({6, 29}, random_floats(6 * 29)), y = on_cpu<f32, 2>({6, 29}, random_floats(6 * 29));
  CHECK(disagreement(softmax, {6}, x, y) == "");

  const auto linear = kernel("linear", [](In<f32, 2> x, In<bf16, 2> w, In<f32, 1> bias, Out<f32, 2> y, Scalar<f32> s) {
    auto [m, n] = blocks(cdiv(y.extent(0), 4), cdiv(y.extent(1), 8));
    Var acc = zeros<f32>({4, 8});
    for (Index k : range(cdiv(x.extent(1), 16)))
      acc = mma(cast<bf16>(load(x, {m, k}, {4, 16})), load(w, {k, n}, {16, 8}), acc);
    const Tile z = acc * s + load(bias, {n}, {8});
    store(y, {m, n}, 0.5f * z * (1.0f + tanh(0.79788456f * (z + 0.044715f * z * z * z))));
  });
  std::vector<bf16> weights;
  for (float w : random_floats(29 * 11)) weights.emplace_back(w);
  const auto w = on_cpu<bf16, 2>({29, 11}, weights);
  const auto bias = on_cpu<f32, 1>({11}, random_floats(11));
  const auto z = on_cpu<f32, 2>({6, 11}, random_floats(66));
  CHECK(disagreement(linear, {2, 2}, x, w, bias, z, 0.3f) == "");

  const auto norm = kernel("norm", [](In<f32, 2> x, Out<f32, 2> y, Out<f32, 2> running) {
    Index row = blocks(x.extent(0));
    const Tile t = load(x, {row, 0}, {1, 29});
    const Tile centered = t - sum(t, 1) / 29;
    store(y, {row, 0}, centered * rsqrt(sum(centered * centered, 1) / 29 + 1e-5f));
    store(running, {row, 0}, cumsum(where(t > 0, log(abs(t)), t), 1));
  });
  const auto running = on_cpu<f32, 2>({6, 29}, random_floats(6 * 29));
  CHECK(disagreement(norm, {6}, x, y, running) == "");
}

TEST_CASE("bounds are as tight as the ops", "[reference]") {
  const auto widest = [](const std::vector<Interval>& elements) {
    Real widest = 0;
    for (const Interval& e : elements)
      widest = std::max(widest, (e.high - e.low) / std::max<Real>(std::abs(e.low), 0.1L));
    return widest;
  };
  const auto k = kernel("chain", [](In<f32, 2> x, Out<f32, 2> y, Out<f32, 2> whole) {
    const Tile t = load(x, {0, 0}, {8, 8});
    const Tile e = exp(t - max(t, 1));
    store(y, {0, 0}, e / sum(e, 1));
    store(whole, {0, 0}, mma(cast<f32>(cast<i32>(t * 100)), cast<f32>(cast<i32>(t * 50)), full<f32>({8, 8}, 7)));
  });
  const auto x = on_cpu<f32, 2>({8, 8}, random_floats(64)), y = on_cpu<f32, 2>({8, 8}, random_floats(64));
  const auto whole = on_cpu<f32, 2>({8, 8}, random_floats(64));
  CHECK(widest(expected(1, k, {}, x, y, whole)) < 4e-6L);  // 2 (3e-7 twice, 2e-7, 7 sums, a difference of up to 4)
  CHECK(widest(expected(2, k, {}, x, y, whole)) == 0);
}

}  // namespace test_reference
