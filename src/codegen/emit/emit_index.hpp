// Integer expressions of generated text: element offsets, and conditions on them. An expression is built with
// operators, folded as it is built, and printed with only the parentheses that C++ needs.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal::codegen {

class IndexExpression {
 public:
  /// An int if the constant fits, else 64-bit.
  IndexExpression(std::int64_t constant);
  /// A variable that is at least 0 may have a known upper bound, `below`, which is exclusive; 0 if it is unknown.
  static IndexExpression variable(std::string name, std::int64_t below = 0);
  static IndexExpression call(std::string function, std::vector<IndexExpression> arguments);
  /// Text that needs no parentheses around it and is printed without folding.
  static IndexExpression raw(std::string text) { return variable(std::move(text)); }
  /// The condition that always holds: both(always(), c) is c.
  static IndexExpression always() { return truth(true); }
  static IndexExpression never() { return truth(false); }

  bool is(std::int64_t constant) const { return kind_ == Kind::constant && constant_ == constant; }
  bool is_always() const { return kind_ == Kind::truth && constant_; }
  bool is_never() const { return kind_ == Kind::truth && !constant_; }
  bool is_constant() const { return kind_ == Kind::constant; }
  /// Only for a constant.
  std::int64_t value() const { return constant_; }
  /// A single name, number or call.
  bool is_primary() const;
  std::string text() const;

  friend IndexExpression operator+(const IndexExpression& a, const IndexExpression& b);
  friend IndexExpression operator-(const IndexExpression& a, const IndexExpression& b);
  friend IndexExpression operator*(const IndexExpression& a, const IndexExpression& b);
  friend IndexExpression operator/(const IndexExpression& a, const IndexExpression& b);
  friend IndexExpression operator%(const IndexExpression& a, const IndexExpression& b);
  friend IndexExpression operator&(const IndexExpression& a, const IndexExpression& b);
  friend IndexExpression operator<(const IndexExpression& a, const IndexExpression& b);
  friend IndexExpression operator>=(const IndexExpression& a, const IndexExpression& b);
  friend IndexExpression equal(const IndexExpression& a, const IndexExpression& b);
  friend IndexExpression both(const IndexExpression& a, const IndexExpression& b);
  /// Adds parentheses, needed or not, unless it is primary.
  friend IndexExpression grouped(const IndexExpression& a);
  friend IndexExpression cast_i64(const IndexExpression& a);
  /// "pointer + offset", with the offset computed separately.
  friend std::string beyond(std::string_view pointer, const IndexExpression& offset);

 private:
  enum class Kind : std::uint8_t {
    constant,
    variable,
    call,
    group,
    truth,
    matmul,
    quotient,
    remainder,
    sum,
    difference,
    less,
    at_least,
    equal,
    bits,
    both,
  };
  IndexExpression(Kind kind, std::vector<IndexExpression> in) : kind_(kind), in_(std::move(in)) {}
  static IndexExpression constant(std::int64_t value, bool wide);
  static IndexExpression truth(bool holds);
  static std::optional<std::int64_t> computed(Kind kind, std::int64_t a, std::int64_t b);
  static IndexExpression binary(Kind kind, const IndexExpression& a, const IndexExpression& b);
  static std::int64_t bound(Kind kind, const IndexExpression& a, const IndexExpression& b);
  static int precedence(Kind kind);
  const IndexExpression& without_group() const { return kind_ == Kind::group ? in_[0] : *this; }

  Kind kind_{};
  std::int64_t constant_ = 0;
  bool wide_ = false;       // 64-bit, as far as is known
  std::int64_t below_ = 0;  // the value is in [0, below_); 0: not known
  std::string name_;
  std::vector<IndexExpression> in_;
};

IndexExpression equal(const IndexExpression& a, const IndexExpression& b);
IndexExpression both(const IndexExpression& a, const IndexExpression& b);
IndexExpression grouped(const IndexExpression& a);
IndexExpression cast_i64(const IndexExpression& a);
std::string beyond(std::string_view pointer, const IndexExpression& offset);

}  // namespace tessera::internal::codegen

template <>
struct fmt::formatter<tessera::internal::codegen::IndexExpression> : fmt::formatter<std::string_view> {
  auto format(const tessera::internal::codegen::IndexExpression& expression, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(expression.text(), context);
  }
};
