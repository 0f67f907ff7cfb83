#include "codegen/emit/emit_index.hpp"

#include <algorithm>
#include <limits>

#include "codegen/plan/spelling.hpp"

namespace tessera::internal::codegen {

namespace {

bool is_int(std::int64_t value) {
  return value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

// Empty where the text would not compute a number: overflow of 64 bits, or division by 0.
std::optional<std::int64_t> IndexExpression::computed(Kind kind, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool divides = b != 0 && !(b == -1 && a == std::numeric_limits<std::int64_t>::min());
  switch (kind) {
    case Kind::sum:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Kind::difference:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Kind::matmul:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Kind::quotient:
      return divides ? std::optional(a / b) : std::nullopt;
    case Kind::remainder:
      return divides ? std::optional(a % b) : std::nullopt;
    case Kind::bits:
      return a & b;
    default:
      return std::nullopt;
  }
}

// Folds constants, as the text would compute them; neutral elements; and quotients, remainders and comparisons that a
// bound decides. A 64-bit expression stays 64-bit, so that additions to it are computed in 64 bits, too.
IndexExpression IndexExpression::binary(Kind kind, const IndexExpression& a, const IndexExpression& b) {
  const bool wide = a.wide_ || b.wide_, constants = a.is_constant() && b.is_constant();
  if (constants)
    if (const auto value = computed(kind, a.constant_, b.constant_); value && (wide || is_int(*value)))
      return constant(*value, wide);
  const auto alone = [&](const IndexExpression& in) { return wide && !in.wide_ ? cast_i64(in) : in; };
  const bool bounded = a.below_ > 0 && b.is_constant();
  switch (kind) {
    case Kind::sum:
      if (a.is(0)) return alone(b);
      if (b.is(0)) return alone(a);
      break;
    case Kind::difference:
      if (b.is(0)) return alone(a);
      break;
    case Kind::matmul:
      if (a.is(0) || b.is(0)) return constant(0, wide);
      if (a.is(1)) return alone(b.without_group());
      if (b.is(1)) return alone(a.without_group());
      break;
    case Kind::quotient:
      if (b.is(1)) return alone(a.without_group());
      if (bounded && a.below_ <= b.constant_) return constant(0, wide);
      break;
    case Kind::remainder:
      if (b.is(1)) return constant(0, wide);
      if (bounded && a.below_ <= b.constant_) return alone(a.without_group());
      break;
    case Kind::bits:
      if (b.is(0)) return b;
      break;
    case Kind::both:
      if (a.is_always() || b.is_never()) return b;
      if (b.is_always() || a.is_never()) return a;
      break;
    case Kind::less:
      if (constants) return truth(a.constant_ < b.constant_);
      if (bounded && a.below_ <= b.constant_) return always();
      if (bounded && b.constant_ <= 0) return truth(false);
      break;
    case Kind::at_least:
      if (constants) return truth(a.constant_ >= b.constant_);
      if (bounded && b.constant_ <= 0) return always();
      break;
    case Kind::equal:
      if (constants) return truth(a.constant_ == b.constant_);
      break;
    case Kind::constant:
    case Kind::variable:
    case Kind::call:
    case Kind::group:
    case Kind::truth:
      break;
  }
  IndexExpression result(kind, {a, b});
  result.below_ = bound(kind, a, b);
  result.wide_ = wide;
  return result;
}

std::int64_t IndexExpression::bound(Kind kind, const IndexExpression& a, const IndexExpression& b) {
  if (a.below_ == 0 || b.below_ == 0) return 0;
  const auto beyond = [](std::optional<std::int64_t> most) {
    return most && *most < std::numeric_limits<std::int64_t>::max() ? *most + 1 : 0;
  };
  const std::int64_t most_a = a.below_ - 1, most_b = b.below_ - 1;
  switch (kind) {
    case Kind::sum:
    case Kind::matmul:
      return beyond(computed(kind, most_a, most_b));
    case Kind::quotient:
      return b.is_constant() && b.constant_ > 0 ? most_a / b.constant_ + 1 : 0;
    case Kind::remainder:
      return b.is_constant() ? std::min(a.below_, b.constant_) : 0;
    case Kind::bits:
      return std::min(a.below_, b.below_);
    default:
      return 0;
  }
}

IndexExpression::IndexExpression(std::int64_t constant) : IndexExpression(Kind::constant, {}) {
  constant_ = constant;
  wide_ = !is_int(constant);
  below_ = constant >= 0 && constant < std::numeric_limits<std::int64_t>::max() ? constant + 1 : 0;
}

IndexExpression IndexExpression::constant(std::int64_t value, bool wide) {
  IndexExpression result(value);
  result.wide_ |= wide;
  return result;
}

IndexExpression IndexExpression::variable(std::string name, std::int64_t below) {
  IndexExpression result(Kind::variable, {});
  result.name_ = std::move(name);
  result.below_ = below;
  return result;
}

IndexExpression IndexExpression::call(std::string function, std::vector<IndexExpression> arguments) {
  IndexExpression result(Kind::call, std::move(arguments));
  result.name_ = std::move(function);
  return result;
}

IndexExpression IndexExpression::truth(bool holds) {
  IndexExpression result(Kind::truth, {});
  result.constant_ = holds;
  return result;
}

IndexExpression cast_i64(const IndexExpression& a) {
  if (a.wide_) return a;
  if (a.is_constant()) return IndexExpression::constant(a.constant_, true);
  IndexExpression result = IndexExpression::call("static_cast<i64>", {a.without_group()});
  result.below_ = a.below_;
  result.wide_ = true;
  return result;
}

bool IndexExpression::is_primary() const {
  return precedence(kind_) == precedence(Kind::constant) && !(is_constant() && constant_ < 0);
}

using Index = IndexExpression;
Index operator+(const Index& a, const Index& b) { return Index::binary(Index::Kind::sum, a, b); }
Index operator-(const Index& a, const Index& b) { return Index::binary(Index::Kind::difference, a, b); }
Index operator*(const Index& a, const Index& b) { return Index::binary(Index::Kind::matmul, a, b); }
Index operator/(const Index& a, const Index& b) { return Index::binary(Index::Kind::quotient, a, b); }
Index operator%(const Index& a, const Index& b) { return Index::binary(Index::Kind::remainder, a, b); }
Index operator&(const Index& a, const Index& b) { return Index::binary(Index::Kind::bits, a, b); }
Index operator<(const Index& a, const Index& b) { return Index::binary(Index::Kind::less, a, b); }
Index operator>=(const Index& a, const Index& b) { return Index::binary(Index::Kind::at_least, a, b); }
Index equal(const Index& a, const Index& b) { return Index::binary(Index::Kind::equal, a, b); }
Index both(const Index& a, const Index& b) { return Index::binary(Index::Kind::both, a, b); }
Index grouped(const Index& a) {
  if (a.is_primary()) return a;
  Index result(Index::Kind::group, {a});
  result.below_ = a.below_;
  result.wide_ = a.wide_;
  return result;
}

std::string beyond(std::string_view pointer, const Index& offset) {
  if (offset.is(0)) return std::string(pointer);
  const bool alone = Index::precedence(offset.kind_) > Index::precedence(Index::Kind::sum);
  return fmt::format("{} + {}{}{}", pointer, alone ? "" : "(", offset.text(), alone ? "" : ")");
}

// As in C++; the tightest binding first.
int IndexExpression::precedence(Kind kind) {
  switch (kind) {
    case Kind::constant:
    case Kind::variable:
    case Kind::call:
    case Kind::group:
    case Kind::truth:
      return 6;
    case Kind::matmul:
    case Kind::quotient:
    case Kind::remainder:
      return 5;
    case Kind::sum:
    case Kind::difference:
      return 4;
    case Kind::less:
    case Kind::at_least:
      return 3;
    case Kind::equal:
      return 2;
    case Kind::bits:
      return 1;
    case Kind::both:
      return 0;
  }
  return 0;
}

std::string IndexExpression::text() const {
  const auto infix = [&](std::string_view spelling) {
    const int own = precedence(kind_);
    // a + (b + c) is printed as a + b + c, and conditions likewise; the right side of a - (b - c) and the like keeps
    // its parentheses.
    const bool associative = kind_ == Kind::sum || kind_ == Kind::both;
    const auto operand = [&](const IndexExpression& in, bool together) {
      const int of_operand = precedence(in.kind_);
      return of_operand < own || (together && of_operand == own) ? "(" + in.text() + ")" : in.text();
    };
    return fmt::format("{} {} {}", operand(in_[0], false), spelling, operand(in_[1], !associative));
  };
  switch (kind_) {
    case Kind::constant: {
      Cell cell;
      if (wide_)
        cell.i64 = constant_;
      else
        cell.i32 = static_cast<std::int32_t>(constant_);
      return number(wide_ ? ElementType::i64 : ElementType::i32, cell);
    }
    case Kind::variable:
      return name_;
    case Kind::call: {
      std::string arguments;
      for (const IndexExpression& argument : in_) arguments += (arguments.empty() ? "" : ", ") + argument.text();
      return fmt::format("{}({})", name_, arguments);
    }
    case Kind::group:
      return "(" + in_[0].text() + ")";
    case Kind::truth:
      return is_always() ? "true" : "false";
    case Kind::matmul:
      return infix("*");
    case Kind::quotient:
      return infix("/");
    case Kind::remainder:
      return infix("%");
    case Kind::sum:
      return infix("+");
    case Kind::difference:
      return infix("-");
    case Kind::less:
      return infix("<");
    case Kind::at_least:
      return infix(">=");
    case Kind::equal:
      return infix("==");
    case Kind::bits:
      return infix("&");
    case Kind::both:
      return infix("&&");
  }
  return "";
}

}  // namespace tessera::internal::codegen
