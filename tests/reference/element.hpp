// The possible values of an element, and the ops on single elements: interval arithmetic, widened by the tolerances of
// ops.def.
#pragma once
#include "reference/numbers.hpp"
#include "tessera/graph/element.hpp"
#include "tessera/graph/op.hpp"

namespace tessera::internal::reference {

using numbers::Real;

/// The numbers in [low, high], both ends included, and NaN if `nan`. Integers and preds (0 or 1) are exact. A real that
/// is certainly NaN has an empty interval. The sign of a zero is never known.
struct Element {
  Real low = 0, high = 0;
  bool nan = false;

  static Element of(Real x) { return x == x ? Element{x, x, false} : no_number(); }
  /// Any value, of any type.
  static Element anything() { return {-numbers::real_inf, numbers::real_inf, true}; }
  /// Certainly NaN.
  static Element no_number() { return {numbers::real_inf, -numbers::real_inf, true}; }

  bool empty() const { return low > high; }
  /// Is it certainly a single number?
  bool exact() const { return low == high && !nan; }
  bool may_be(Real x) const { return x != x ? nan : low <= x && x <= high; }
};

/// A value in host form.
Element element_of(ElementType type, Cell cell);

/// The union of both.
Element hull(const Element& a, const Element& b);

/// Unary, binary and ternary ops on operands of an element type, real results as f64 or else as f32.
Element unary(Op op, ElementType type, const Element& a);
Element binary(Op op, ElementType type, const Element& a, const Element& b);
Element ternary(Op op, ElementType type, const Element& a, const Element& b, const Element& c);
Element select(const Element& condition, const Element& a, const Element& b);
Element cast(ElementType from, ElementType to, const Element& a);
/// Between types with equal numbers of bits.
Element bitcast(ElementType from, ElementType to, const Element& a);

/// A sum of reals in f64, or else in f32, in any order.
class Sum {
 public:
  explicit Sum(ElementType type) : type_(type) {}
  void add(const Element& term);
  /// Assumes this many more roundings per term than there are sums. With `flushed`, subnormal terms and sums may have
  /// been replaced by 0.
  Element value(int more_roundings = 0, bool flushed = false) const;
  /// Assumes that tensor cores kept 14 bits of sums of 128 terms.
  Element value_of_fp8() const;

 private:
  ElementType type_;
  std::int64_t terms_ = 0;
  Real low_ = 0, high_ = 0;            // sums of the finite ends
  Real low_size_ = 0, high_size_ = 0;  // sums of their absolute values
  Real up_ = 0, down_ = 0;             // how far partial sums may reach
  int last_digit_ = 1024;              // every term is a multiple of 2 to this power, if all are exact
  bool exact_ = true, nan_ = false;
  bool always_positive_ = false, always_negative_ = false;  // some term is certainly +inf, -inf
};

/// A product of reals in f64, or else in f32, in any order.
class Product {
 public:
  explicit Product(ElementType type) : type_(type) {}
  void multiply(const Element& factor);
  Element value() const;

 private:
  ElementType type_;
  std::int64_t factors_ = 0;
  Real low_ = 1, high_ = 1;       // of the products of their ends
  Real largest_ = 1, least_ = 1;  // absolute values that partial products may reach
  bool known_ = true;             // all factors are certainly finite numbers
};

}  // namespace tessera::internal::reference
