#include "codegen/emit/emit_index.hpp"

#include <algorithm>

namespace tessera::codegen {

// All that is folded: neutral elements, and remainders that a bound makes idle. Constants are not computed with: the
// text shows what they are made of.
IndexExpression IndexExpression::binary(Kind kind, const IndexExpression& a, const IndexExpression& b) {
  switch (kind) {
    case Kind::sum:
      if (a.is(0)) return b;
      if (b.is(0)) return a;
      break;
    case Kind::difference:
      if (b.is(0)) return a;
      break;
    case Kind::product:
      if (a.is(0)) return a;
      if (b.is(1)) return a.without_group();
      break;
    case Kind::quotient:
      if (b.is(1)) return a.without_group();
      break;
    case Kind::remainder:
      if (a.below_ > 0 && b.kind_ == Kind::constant && a.below_ <= b.constant_) return a.without_group();
      break;
    case Kind::bits:
      if (b.is(0)) return b;
      break;
    case Kind::both:
      if (a.is_always()) return b;
      if (b.is_always()) return a;
      break;
    case Kind::less:
    case Kind::at_least:
    case Kind::equal:
    case Kind::constant:
    case Kind::variable:
    case Kind::call:
    case Kind::group:
    case Kind::always:
      break;
  }
  IndexExpression result(kind, {a, b});
  result.below_ = bound(kind, a, b);
  return result;
}

std::int64_t IndexExpression::bound(Kind kind, const IndexExpression& a, const IndexExpression& b) {
  if (a.below_ == 0 || b.below_ == 0) return 0;
  const std::int64_t most_a = a.below_ - 1, most_b = b.below_ - 1;
  switch (kind) {
    case Kind::sum:
      return most_a + most_b + 1;
    case Kind::product:
      return most_a * most_b + 1;
    case Kind::quotient:
      return b.kind_ == Kind::constant && b.constant_ > 0 ? most_a / b.constant_ + 1 : 0;
    case Kind::remainder:
      return b.kind_ == Kind::constant ? std::min(a.below_, b.constant_) : 0;
    case Kind::bits:
      return std::min(a.below_, b.below_);
    default:
      return 0;
  }
}

IndexExpression::IndexExpression(std::int64_t constant)
    : kind_(Kind::constant), constant_(constant), below_(std::max<std::int64_t>(constant + 1, 0)) {}

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

IndexExpression IndexExpression::always() { return {Kind::always, {}}; }

bool IndexExpression::is_primary() const {
  return precedence(kind_) == precedence(Kind::constant) && !(kind_ == Kind::constant && constant_ < 0);
}

using Index = IndexExpression;
Index operator+(const Index& a, const Index& b) { return Index::binary(Index::Kind::sum, a, b); }
Index operator-(const Index& a, const Index& b) { return Index::binary(Index::Kind::difference, a, b); }
Index operator*(const Index& a, const Index& b) { return Index::binary(Index::Kind::product, a, b); }
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
  return result;
}

// C++'s, the tightest first.
int IndexExpression::precedence(Kind kind) {
  switch (kind) {
    case Kind::constant:
    case Kind::variable:
    case Kind::call:
    case Kind::group:
    case Kind::always:
      return 6;
    case Kind::product:
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
    // a + (b + c) is a + b + c, and so are conditions; of a - (b - c) and the like the right side stays together.
    const bool associative = kind_ == Kind::sum || kind_ == Kind::both;
    const auto operand = [&](const IndexExpression& in, bool together) {
      const int of_operand = precedence(in.kind_);
      return of_operand < own || (together && of_operand == own) ? "(" + in.text() + ")" : in.text();
    };
    return fmt::format("{} {} {}", operand(in_[0], false), spelling, operand(in_[1], !associative));
  };
  switch (kind_) {
    case Kind::constant:
      return fmt::format("{}", constant_);
    case Kind::variable:
      return name_;
    case Kind::call: {
      std::string arguments;
      for (const IndexExpression& argument : in_) arguments += (arguments.empty() ? "" : ", ") + argument.text();
      return fmt::format("{}({})", name_, arguments);
    }
    case Kind::group:
      return "(" + in_[0].text() + ")";
    case Kind::always:
      return "true";
    case Kind::product:
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

}  // namespace tessera::codegen
