#include "codegen/lower/masks.hpp"

#include <limits>

namespace tessera::internal::lowering {
namespace {

/// One expression over numbers. Bounds have 64 bits: where a sum of indices wraps in 32 bits, the tile is tested
/// element by element. It is also tested so where an expression is too long to be a bound.
class Bounds {
 public:
  explicit Bounds(Steps& steps) : steps_(steps) {}

  bool fails(Id id) {
    const std::optional<Operand> holds = condition(id);
    if (holds) term(Op::logical_not, ElementType::pred, ElementType::pred, {*holds});
    return holds.has_value();
  }
  Expression take() { return std::move(expression_); }

 private:
  // A value that is used twice is visited twice, and recursion is as deep as a chain of values is long.
  bool too_long() { return ++visited_ > 64; }
  std::optional<Operand> condition(Id id) {
    if (too_long()) return {};
    const Node& at = steps_.node(behind(id));
    switch (at.op) {
      case Op::logical_and: {
        // In two statements: C++ does not define the order in which arguments are evaluated, and so that of the terms.
        const std::optional<Operand> second = condition(at.in[1]), first = condition(at.in[0]);
        return both(first, second);
      }
      case Op::less:
      case Op::less_equal:
        return ordered(at.op, at.in[0], at.in[1]);
      case Op::greater:
        return ordered(Op::less, at.in[1], at.in[0]);
      case Op::greater_equal:
        return ordered(Op::less_equal, at.in[1], at.in[0]);
      default:
        return {};
    }
  }
  Id behind(Id id) const {
    while (steps_.node(id).op == Op::broadcast) id = steps_.node(id).in[0];
    return id;
  }
  Operand term(Op op, ElementType type, ElementType of, std::vector<Operand> in) {
    expression_.terms.push_back({op, type, of, std::move(in)});
    Operand operand;
    operand.kind = Operand::Kind::term;
    operand.index = static_cast<int>(expression_.terms.size()) - 1;
    return operand;
  }
  std::optional<Operand> both(const std::optional<Operand>& a, const std::optional<Operand>& b) {
    if (!a || !b) return {};
    return term(Op::logical_and, ElementType::pred, ElementType::pred, {*a, *b});
  }
  // The largest of one is below the smallest of the other, and neither wraps.
  std::optional<Operand> ordered(Op op, Id low, Id high) {
    if (steps_.node(low).type != ElementType::i32) return {};
    dividends_.clear();
    const auto least = bound(low, false), most = bound(low, true), above = bound(high, false), end = bound(high, true);
    if (!least || !most || !above || !end) return {};
    const auto starts = fits(*least, false), ends = fits(*end, true);
    auto inside = both(starts, ends);
    for (const auto& dividend : dividends_) inside = both(inside, dividend);
    return both(compare(op, *most, *above), inside);
  }
  std::optional<Operand> compare(Op how, const Operand& a, const Operand& b) {
    return term(how, ElementType::pred, ElementType::i64, {a, b});
  }
  // Is the largest or the smallest element one of 32 bits?
  std::optional<Operand> fits(const Operand& bound, bool largest) {
    using Limits = std::numeric_limits<std::int32_t>;
    return largest ? compare(Op::less_equal, bound, literal(Limits::max()))
                   : compare(Op::less_equal, literal(Limits::min()), bound);
  }
  // The largest or the smallest of all elements of the tile.
  std::optional<Operand> bound(Id id, bool largest) {
    if (too_long()) return {};
    id = behind(id);
    const Node& at = steps_.node(id);
    if (at.op == Op::constant) return literal(at.number().i32);
    if (at.op == Op::iota) return literal(largest ? at.shape[at.axis()] - 1 : 0);
    if (at.shape.rank() == 0) return term(Op::cast, ElementType::i64, ElementType::i32, {steps_.scalar(id)});
    if (at.op == Op::floor_div || at.op == Op::modulo) return quotient(at, largest);
    if (at.op != Op::add && at.op != Op::sub) return {};
    const auto a = bound(at.in[0], largest), b = bound(at.in[1], largest == (at.op == Op::add));
    if (!a || !b) return {};
    return term(at.op, ElementType::i64, ElementType::i64, {*a, *b});
  }

  // A quotient or a remainder by a constant. A sum that wraps before it is divided is not in order.
  std::optional<Operand> quotient(const Node& at, bool largest) {
    const Node& divisor = steps_.node(behind(at.in[1]));
    if (divisor.op != Op::constant || divisor.number().i32 < 1) return {};
    if (at.op == Op::modulo) return literal(largest ? divisor.number().i32 - 1 : 0);
    const auto dividend = bound(at.in[0], largest);
    if (!dividend) return {};
    dividends_.push_back(fits(*dividend, largest));
    return term(Op::floor_div, ElementType::i64, ElementType::i64, {*dividend, literal(divisor.number().i32)});
  }

  Steps& steps_;
  Expression expression_;
  std::vector<std::optional<Operand>> dividends_;  // of a comparison: do they not wrap?
  int visited_ = 0;
};

}  // namespace

std::optional<ValueId> fails_somewhere(Steps& steps, Id condition, Id about) {
  Bounds bounds(steps);
  if (!bounds.fails(condition)) return {};
  return steps.number(about, steps.values.label(about, "cut"), ElementType::pred, bounds.take());
}

}  // namespace tessera::internal::lowering
