#include "reference/element.hpp"

#include <bit>

#include "tessera/graph/graph.hpp"

namespace tessera::internal::reference {
namespace {

using numbers::real_inf;
using numbers::Wide;

/// The format of arithmetic in a real type, held in registers as f32 or f64.
struct Format {
  Real largest, smallest_normal, smallest;
  int digits;
  Real scale;  ///< of the tolerances of ops.def, which are for f32

  Real unit() const { return std::ldexp(Real(1), -digits); }
};
constexpr Format binary32{0x1.fffffep127L, 0x1p-126L, 0x1p-149L, 24, 1};
constexpr Format binary64{0x1.fffffffffffffp1023L, 0x1p-1022L, 0x1p-1074L, 53, 0x1p-29L};
const Format& format_of(ElementType type) { return type == ElementType::f64 ? binary64 : binary32; }

constexpr Real tolerance(Op op) {
  switch (op) {
#define UNARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  case Op::name:                                                                          \
    return tolerance;
#define BINARY UNARY
#define TERNARY UNARY
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
    default:
      return 0;
  }
}

/// The smallest number of the format that is not less.
Real above(const Format& f, Real x) {
  if (x > f.largest) return real_inf;
  if (x < -f.largest) return std::isinf(x) ? x : -f.largest;
  if (x == 0 || std::isnan(x)) return x;
  const Real step = std::max(f.smallest, std::ldexp(Real(1), std::ilogb(x) + 1 - f.digits));
  return std::ceil(x / step) * step;
}
bool is_held(const Format& f, Real x) { return above(f, x) == x; }

/// An end of an interval, and whether arithmetic computes it exactly.
struct End {
  Real value;
  bool exact = false;
};

/// The smallest possible result if the exact value is at least the end.
Real below(const Format& f, End end, Op op) {
  if (end.exact || std::isinf(end.value)) return end.value;
  const Real least = has_absolute_tolerance(op) ? 1 : f.smallest_normal;
  return end.value - tolerance(op) * f.scale * std::max(std::abs(end.value), least);
}

/// Infinite ends where a result may overflow.
Element overflowing(const Format& f, Element e) {
  if (e.high > f.largest) e.high = real_inf;
  if (e.low < -f.largest) e.low = -real_inf;
  return e;
}

/// The part of an interval that the format represents.
Element held(const Format& f, Element e) {
  e = overflowing(f, e);
  if (e.empty()) return e;
  return {above(f, e.low), -above(f, -e.high), e.nan};
}

Element widened(const Format& f, Op op, End low, End high, bool nan) {
  const Element e{below(f, low, op), -below(f, {-high.value, high.exact}, op), nan};
  // A product that is added to something may stay unrounded.
  return op == Op::mul ? overflowing(f, e) : held(f, e);
}

Element increasing(const Format& f, Op op, const Element& a, bool nan) {
  return widened(f, op, {numbers::unary(op, a.low)}, {numbers::unary(op, a.high)}, nan);
}

Element mirrored(const Element& a) { return {-a.high, -a.low, a.nan}; }

Element decreasing(const Format& f, Op op, const Element& a, bool nan) {
  return widened(f, op, {numbers::unary(op, a.high)}, {numbers::unary(op, a.low)}, nan);
}

/// For an op that is defined between two numbers, or from one on.
Element within(const Element& a, Real low, Real high) {
  if (a.high < low || a.low > high) return Element::no_number();
  return {std::max(a.low, low), std::min(a.high, high), a.nan || a.low < low || a.high > high};
}

/// A function whose slope is at most 1.
Element wave(const Format& f, Op op, const Element& a) {
  const bool endless = std::isinf(a.low) || std::isinf(a.high);
  if (endless && a.low == a.high) return Element::no_number();
  if (endless || a.high - a.low > 2) return {-1, 1, a.nan || endless};
  const Real half = (a.high - a.low) / 2, middle = numbers::unary(op, a.low + half);
  return widened(f, op, {std::max<Real>(middle - half, -1)}, {std::min<Real>(middle + half, 1)}, a.nan);
}

/// Its error is relative to its argument.
Element wave_approximation(const Format& f, Op op, const Element& a) {
  const Real size = std::max(-a.low, a.high);
  Element e = wave(f, op, a);
  const Real more = size <= 6.28L ? 0 : size <= 314 ? 4e-5L : 2;
  if (!e.empty()) e.low -= more, e.high += more;
  return e;
}

/// Increases between two poles.
Element tangent(const Format& f, const Element& a) {
  const auto branch = [](Real x) { return std::floor(x / std::acos(Real(-1)) + 0.5L); };
  if (std::isinf(a.low) && a.low == a.high) return Element::no_number();
  const bool between = a.low == a.high || (std::max(-a.low, a.high) < 1e6L && branch(a.low) == branch(a.high));
  if (!between) return {-real_inf, real_inf, a.nan || std::isinf(a.low) || std::isinf(a.high)};
  return increasing(f, Op::tan, a, a.nan);
}

Element outcome(bool may_hold, bool may_fail) { return {may_fail ? Real(0) : 1, may_hold ? Real(1) : 0}; }

Element classified(Op op, const Element& a) {
  const bool infinite = !a.empty() && (a.low == -real_inf || a.high == real_inf);
  const bool finite = !a.empty() && !(infinite && a.low == a.high);
  switch (op) {
    case Op::isnan:
      return outcome(a.nan, !a.empty());
    case Op::isinf:
      return outcome(infinite, a.nan || finite);
    default:
      return outcome(finite, a.nan || infinite);
  }
}

Element magnitude(const Element& a) {
  return {a.low > 0 ? a.low : a.high < 0 ? -a.high : 0, std::max(-a.low, a.high), a.nan};
}

Element real_unary(const Format& f, Op op, const Element& a) {
  if (result_type(op, ElementType::f32) == ElementType::pred) return classified(op, a);
  if (a.empty()) return a;
  switch (op) {
    case Op::log:
    case Op::log2:
    case Op::log2_approx:
    case Op::log10:
    case Op::log1p: {
      const Element inside = within(a, op == Op::log1p ? -1 : 0, real_inf);
      return inside.empty() ? inside : increasing(f, op, inside, inside.nan);
    }
    case Op::sqrt:
    case Op::sqrt_approx: {
      if (a.high < 0) return Element::no_number();
      const Element e = increasing(f, op, {std::max<Real>(a.low, 0), a.high}, a.nan || a.low < 0);
      return {std::max<Real>(e.low, 0), e.high, e.nan};
    }
    case Op::asin:
    case Op::acos: {
      const Element inside = within(a, -1, 1);
      if (inside.empty()) return inside;
      return op == Op::asin ? increasing(f, op, inside, inside.nan) : decreasing(f, op, inside, inside.nan);
    }
    case Op::sin:
    case Op::cos:
      return wave(f, op, a);
    case Op::sin_approx:
    case Op::cos_approx:
      return wave_approximation(f, op, a);
    case Op::tan:
      return tangent(f, a);
    case Op::cosh:
      return increasing(f, op, magnitude(a), a.nan);
    case Op::erfc:
      return decreasing(f, op, a, a.nan);
    case Op::expm1:
    case Op::atan:
    case Op::sinh:
    case Op::erf:
    case Op::cbrt:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round:
    case Op::sign:
      return increasing(f, op, a, a.nan);
    case Op::rsqrt:
      if (a.high < 0) return Element::no_number();
      if (a.low <= 0) return {-real_inf, real_inf, a.nan || a.low < 0};  // for zeros: an infinity of either sign
      return decreasing(f, op, a, a.nan);
    case Op::neg:
      return mirrored(a);
    case Op::abs:
      return magnitude(a);
    case Op::exp: {
      const Element e = increasing(f, op, a, a.nan);
      return {std::max<Real>(e.low, 0), e.high, e.nan};
    }
    case Op::exp2: {
      const Element e = increasing(f, op, a, a.nan);
      return {e.low < f.smallest_normal ? 0 : e.low, e.high, e.nan};
    }
    case Op::tanh:
    case Op::tanh_approx: {
      const Element e = increasing(f, op, a, a.nan);
      return {std::max<Real>(e.low, -1), std::min<Real>(e.high, 1), e.nan};
    }
    case Op::sigmoid2: {
      const Element e = increasing(f, op, a, a.nan);
      return {e.low < f.smallest_normal ? 0 : e.low, std::min<Real>(e.high, 1), e.nan};
    }
    default:
      throw std::logic_error("element.cpp lacks real " + std::string(name(op)));
  }
}

/// An op's results are between those of the ends of its operands.
template <class F>
Element corners(const Format& f, Op op, const Element& a, const Element& b, bool nan, const F& result) {
  End low{real_inf}, high{-real_inf};
  for (Real x : {a.low, a.high}) {
    for (Real y : {b.low, b.high}) {
      End end = result(x, y);
      if (std::isnan(end.value)) {
        if (a.low == a.high && b.low == b.high) return Element::no_number();
        nan = true;
        end = {0, true};  // zeros are next to inf / inf and 0 * inf; for inf - inf the other corners are enough
      }
      if (end.value < low.value) low = end;
      if (end.value > high.value) high = end;
      if (b.low == b.high) break;
    }
    if (a.low == a.high) break;
  }
  return widened(f, op, low, high, nan);
}

Element add(const Format& f, Op op, const Element& a, const Element& b) {
  return corners(f, op, a, b, a.nan || b.nan, [&](Real x, Real y) {
    const Real sum = x + y, part = sum - x;
    const bool exact = (x - (sum - part)) + (y - part) == 0;  // Knuth's two-sum
    return End{sum, exact && is_held(f, sum)};
  });
}

bool may_be_infinite(const Element& a) { return std::isinf(a.low) || std::isinf(a.high); }

Element mul(const Format& f, const Element& a, const Element& b) {
  const bool undefined = (a.may_be(0) && may_be_infinite(b)) || (b.may_be(0) && may_be_infinite(a));
  return corners(f, Op::mul, a, b, a.nan || b.nan || undefined, [&](Real x, Real y) {
    return End{x * y, is_held(f, x) && is_held(f, y) && is_held(f, x * y)};
  });
}

Element div(const Format& f, const Element& a, const Element& b) {
  if (b.may_be(0)) {
    if (a.low == 0 && a.high == 0 && b.low == 0 && b.high == 0) return Element::no_number();
    return {-real_inf, real_inf, a.nan || b.nan || a.may_be(0) || (may_be_infinite(a) && may_be_infinite(b))};
  }
  return corners(f, Op::div, a, b, a.nan || b.nan, [](Real x, Real y) { return End{x / y}; });
}

Element function(const Format& f, Op op, const Element& a, const Element& b) {
  return corners(f, op, a, b, a.nan || b.nan, [&](Real x, Real y) { return End{numbers::real_function(op, x, y)}; });
}

Element pow(const Format& f, const Element& a, const Element& b) {
  // pow(NaN, 0) and pow(1, NaN) are 1.
  if (a.empty() || b.empty()) {
    const Element& number = a.empty() ? b : a;
    if (number.empty() || !number.may_be(a.empty() ? 0 : 1)) return Element::no_number();
    return {1, 1, !number.exact()};
  }
  const Element any{-real_inf, real_inf, true};
  if (a.low > 0) return function(f, Op::pow, a, b);
  if (!a.exact() || !b.exact()) return any;
  const Real result = numbers::real_function(Op::pow, a.low, b.low);
  if (std::isnan(result)) return Element::no_number();
  if (a.low == 0 && std::isinf(result)) return {-real_inf, real_inf, false};  // zeros have either sign
  return widened(f, Op::pow, {result}, {result}, false);
}

/// Monotonic except for the negative half of the other axis, where zeros have either sign.
Element atan2(const Format& f, const Element& a, const Element& b) {
  if (b.low > 0 || a.low > 0 || a.high < 0) return function(f, Op::atan2, a, b);
  const Real pi = std::acos(Real(-1));
  return widened(f, Op::atan2, {-pi}, {pi}, a.nan || b.nan);
}

Element copysign(const Element& a, const Element& b) {
  if (a.empty()) return a;
  const Element positive = magnitude(a);
  if (!b.nan && b.low > 0) return positive;
  return !b.nan && b.high < 0 ? mirrored(positive) : hull(positive, mirrored(positive));
}

Element real_binary(const Format& f, Op op, const Element& a, const Element& b) {
  if (op == Op::pow) return pow(f, a, b);
  if (op == Op::copysign) return copysign(a, b);
  if (a.empty() || b.empty()) return Element::no_number();
  switch (op) {
    case Op::add:
      return add(f, op, a, b);
    case Op::sub:
      return add(f, op, a, mirrored(b));
    case Op::mul:
      return mul(f, a, b);
    case Op::div:
      return div(f, a, b);
    case Op::atan2:
      return atan2(f, a, b);
    default:
      throw std::logic_error("element.cpp lacks real " + std::string(name(op)));
  }
}

Element lesser(const Element& a, const Element& b, bool ignore_nan) {
  Element result = Element::no_number();
  if (!a.empty() && !b.empty()) result = {std::min(a.low, b.low), std::min(a.high, b.high), a.nan || b.nan};
  if (!ignore_nan) return result;
  if (a.nan) result = hull(result, b);
  if (b.nan) result = hull(result, a);
  result.nan = a.nan && b.nan;
  return result;
}
Element greater(const Element& a, const Element& b, bool ignore_nan) {
  return mirrored(lesser(mirrored(a), mirrored(b), ignore_nan));
}

Element negated(const Element& a) { return {1 - a.high, 1 - a.low}; }

Element less(const Element& a, const Element& b, bool or_equal) {
  const bool numbers = !a.empty() && !b.empty();
  return outcome(numbers && (a.low < b.high || (or_equal && a.low == b.high)),
                 a.nan || b.nan || a.high > b.low || (!or_equal && a.high == b.low));
}
Element equal(const Element& a, const Element& b) {
  const bool numbers = !a.empty() && !b.empty();
  return outcome(numbers && a.low <= b.high && b.low <= a.high, a.nan || b.nan || a.low != b.high || b.low != a.high);
}

Element random_uniform(const Element& key, const Element& index) {
  if (!key.exact() || !index.exact()) return {0, 1};
  const auto word = numbers::random_word(numbers::held(key.low), numbers::held(index.low));
  return Element::of((Real(word >> 9) + 0.5L) * 0x1p-23L);
}

Real truncated(Real x, ElementType to) {
  const Real highest = static_cast<Real>(numbers::highest_number(to)),
             lowest = static_cast<Real>(numbers::lowest_number(to));
  return x >= highest ? highest : x <= lowest ? lowest : std::trunc(x);
}

/// The exponent of the largest power of two that x, which is not 0, is a multiple of.
int last_digit(Real x) {
  int exponent = 0;
  const Real fraction = std::frexp(std::abs(x), &exponent);
  return exponent - 64 + std::countr_zero(static_cast<std::uint64_t>(std::ldexp(fraction, 64)));
}

Element of_integer(ElementType type, i64 x) { return Element::of(static_cast<Real>(numbers::number_in(type, x))); }
Element of_wrapped(ElementType type, Wide x) { return of_integer(type, numbers::wrapped(x, type)); }

}  // namespace

Element element_of(ElementType type, Cell cell) {
  if (type == ElementType::f64) return Element::of(cell.f64);
  return numbers::is_real(type) ? Element::of(cell.f32) : of_integer(type, encode(type, cell));
}

Element hull(const Element& a, const Element& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.nan || b.nan};
}

Element unary(Op op, ElementType type, const Element& a) {
  if (numbers::is_real(type)) return real_unary(format_of(type), op, a);
  if (op == Op::logical_not) return negated(a);
  if (!a.exact()) return Element::anything();
  return of_wrapped(type, numbers::unary(op, type, numbers::held(a.low)));
}

Element binary(Op op, ElementType type, const Element& a, const Element& b) {
  switch (op) {
    case Op::logical_and:
    case Op::minimum:
    case Op::minimum_nan:
      return lesser(a, b, op != Op::minimum_nan);
    case Op::logical_or:
    case Op::maximum:
    case Op::maximum_nan:
      return greater(a, b, op != Op::maximum_nan);
    case Op::less:
    case Op::less_equal:
      return less(a, b, op == Op::less_equal);
    case Op::greater:
    case Op::greater_equal:
      return less(b, a, op == Op::greater_equal);
    case Op::equal:
      return equal(a, b);
    case Op::not_equal:
    case Op::logical_xor:
      return negated(equal(a, b));
    case Op::random_uniform:
      return random_uniform(a, b);
    case Op::cdiv:
      if (numbers::lowest_number(type) == 0)  // the quotient, and 1 if there is a remainder
        return binary(
            Op::add, type, binary(Op::floor_div, type, a, b),
            cast(ElementType::pred, type, binary(Op::not_equal, type, binary(Op::modulo, type, a, b), Element::of(0))));
      return unary(Op::neg, type, binary(Op::floor_div, type, unary(Op::neg, type, a), b));
    default:
      if (numbers::is_real(type)) return real_binary(format_of(type), op, a, b);
      if (!a.exact() || !b.exact()) return Element::anything();
      return of_wrapped(result_type(op, type), numbers::binary(op, type, numbers::held(a.low), numbers::held(b.low)));
  }
}

Element ternary(Op op, ElementType type, const Element& a, const Element& b, const Element& c) {
  switch (op) {
    case Op::fma:  // once rounded or twice
      return binary(Op::add, type, binary(Op::mul, type, a, b), c);
    case Op::clamp:
      return binary(Op::minimum, type, binary(Op::maximum, type, a, b), c);
    default:
      if (numbers::is_real(type)) throw std::logic_error("element.cpp lacks real " + std::string(name(op)));
      if (!a.exact() || !b.exact() || !c.exact()) return Element::anything();
      return of_wrapped(result_type(op, type), numbers::ternary(op, static_cast<Wide>(a.low), static_cast<Wide>(b.low),
                                                                static_cast<Wide>(c.low)));
  }
}

Element select(const Element& condition, const Element& a, const Element& b) {
  return condition.low == 1 ? a : condition.high == 0 ? b : hull(a, b);
}

Element cast(ElementType from, ElementType to, const Element& a) {
  if (to == ElementType::pred) return negated(equal(a, Element::of(0)));
  if (numbers::is_real(from)) {
    if (numbers::is_real(to)) {
      if (host_type(to) == HostType::f64 || (from != ElementType::f64 && to == ElementType::f32) || a.empty()) return a;
      return {numbers::rounded(a.low, to), numbers::rounded(a.high, to), a.nan};
    }
    const Element number{truncated(a.low, to), truncated(a.high, to)};
    return a.empty() ? Element::of(0) : a.nan ? hull(number, Element::of(0)) : number;
  }
  if (numbers::is_real(to)) {
    const ElementType by = to == ElementType::f64 ? to : ElementType::f32;
    const auto real = [&](Real x) { return numbers::rounded(numbers::rounded(x, by), to); };
    return {real(a.low), real(a.high), a.nan};
  }
  if (a.low >= static_cast<Real>(numbers::lowest_number(to)) &&
      a.high <= static_cast<Real>(numbers::highest_number(to)))
    return a;
  if (!a.exact()) return Element::anything();
  return of_wrapped(to, static_cast<Wide>(a.low));
}

Element bitcast(ElementType from, ElementType to, const Element& a) {
  if (from == to) return a;
  // A zero's sign is unknown, and so are a NaN's bits.
  if (!a.exact() || (numbers::is_real(from) && a.low == 0)) return Element::anything();
  const std::uint64_t bits =
      numbers::is_real(from) ? numbers::bits_of(a.low, from) : static_cast<std::uint64_t>(numbers::held(a.low));
  if (numbers::is_real(to)) return Element::of(numbers::number_of(bits, to));
  return of_wrapped(to, bits);
}

void Sum::add(const Element& term) {
  ++terms_;
  nan_ |= term.nan;
  exact_ &= term.exact() && !std::isinf(term.low);
  if (exact_ && term.low != 0) last_digit_ = std::min(last_digit_, last_digit(term.low));
  always_positive_ |= term.low == real_inf;
  always_negative_ |= term.high == -real_inf;
  up_ += std::max<Real>(term.high, 0);
  down_ += std::max<Real>(-term.low, 0);
  if (!std::isinf(term.low)) low_ += term.low, low_size_ += std::abs(term.low);
  if (!std::isinf(term.high)) high_ += term.high, high_size_ += std::abs(term.high);
}

Element Sum::value(int more_roundings, bool flushed) const {
  if (always_positive_ && always_negative_) return Element::no_number();
  const Format& f = format_of(type_);
  const Real lost = flushed ? Real(2 * terms_) * f.smallest_normal : 0;
  // No partial sum needs more digits than available.
  if (exact_ && low_size_ <= f.largest && low_size_ <= std::ldexp(Real(1), last_digit_ + f.digits))
    return held(f, {low_ - lost, low_ + lost, false});
  // In any order, a term is in at most terms - 1 of the sums: Higham, Accuracy and Stability of Numerical Algorithms,
  // 4.2.
  const Real roundings = Real(std::max<i64>(terms_ - 1, 0) + more_roundings) * f.unit();
  const Real error = roundings / (1 - roundings);
  const bool up = up_ * (1 + error) > f.largest, down = down_ * (1 + error) > f.largest;  // partial sums may overflow
  const Real low = down ? -real_inf : always_positive_ ? real_inf : low_ - error * low_size_ - lost;
  const Real high = up ? real_inf : always_negative_ ? -real_inf : high_ + error * high_size_ + lost;
  return held(f, {low, high, nan_ || (up && down)});
}

// An instruction adds 32 products and a sum, all cut to the 14 bits of the largest, and cuts the result: 128 products
// are cut 4 * 34 times, by less than 2^-13 of the largest term each.
Element Sum::value_of_fp8() const {
  constexpr int bits = 14;
  const Format& f = format_of(type_);
  if (exact_ && low_size_ <= std::ldexp(Real(1), last_digit_ + bits)) return held(f, {low_, low_, false});
  const Element whole = value(2);
  const Real lost = 4 * 34 * std::ldexp(std::max(low_size_, high_size_), 1 - bits);
  return held(f, {whole.low - lost, whole.high + lost, whole.nan});
}

void Product::multiply(const Element& factor) {
  ++factors_;
  known_ &= !factor.nan && !std::isinf(factor.low) && !std::isinf(factor.high);
  if (!known_) return;
  const Real ends[] = {low_ * factor.low, low_ * factor.high, high_ * factor.low, high_ * factor.high};
  low_ = *std::min_element(std::begin(ends), std::end(ends));
  high_ = *std::max_element(std::begin(ends), std::end(ends));
  const Real a = std::abs(factor.low), b = std::abs(factor.high);
  largest_ *= std::max<Real>(1, std::max(a, b));
  if (factor.low != 0 || factor.high != 0)
    least_ *= std::min<Real>(1, factor.low <= 0 && factor.high >= 0 ? 0 : std::min(a, b));
}

Element Product::value() const {
  const Format& f = format_of(type_);
  const Real roundings = Real(factors_) * f.unit(), error = roundings / (1 - roundings);
  // Where partial products overflow, or lose digits below the smallest normal, the order decides.
  if (!known_ || largest_ * (1 + error) > f.largest || least_ < f.smallest_normal) return Element::anything();
  const Real size = std::max(std::abs(low_), std::abs(high_));
  return held(f, {low_ - error * size, high_ + error * size, false});
}

}  // namespace tessera::internal::reference
