// The values of a plan: their elements, where those lie in their tile, and expressions of them.
#pragma once
#include "codegen/emit/emit_writer.hpp"

namespace tessera::internal::codegen {

// --- coordinates

/// The number that digits of an index make.
IndexExpression digits(const std::vector<Digit>& map, const IndexExpression& index);
/// The same of a thread's lane and warp.
IndexExpression digits(const std::vector<std::pair<Factor, int>>& map, const IndexExpression& lane,
                       const IndexExpression& warp);
IndexExpression coordinate(Writer& w, const Layout& layout, int axis, const IndexExpression& index);
/// In the tile that a sweep is over, or over a part of.
IndexExpression coordinate(Writer& w, const Sweep& sweep, int axis, const IndexExpression& index);
/// Which thread of those that hold copies acts for all.
IndexExpression first_copy(Writer& w, const Layout& layout);
/// Elements beyond the tile that a layout covers are none.
IndexExpression inside_tile(Writer& w, const Sweep& sweep, const IndexExpression& index);

// --- values

std::string element(Writer& w, ValueId id, const IndexExpression& index);
/// A value of one element, or a number.
IndexExpression scalar(Writer& w, const Operand& operand);
/// Declares the value a step makes, unless that is done: arrays, or variables, too.
void declare(Writer& w, ValueId id, bool array_only);
/// "x[r] = " or "const float x = ".
std::string assign(Writer& w, ValueId id, const IndexExpression& index);
bool is_indexed_by_constants(const Storage& storage);

// --- expressions

/// An expression of elements, and how tight its operator binds: a name, number or call as tight as any.
struct Spelled {
  enum class Binds : std::uint8_t { other, sum, matmul, primary };
  std::string text;
  Binds binds = Binds::primary;
  /// In parentheses, unless it binds so tight at least.
  std::string operand(Binds least = Binds::primary) const { return binds >= least ? text : "(" + text + ")"; }
};

/// "a + b" of ops.def with a, b and c replaced.
Spelled substitute(std::string_view pattern, const Spelled& a, const Spelled& b, const Spelled& c = {});
/// An operand of a sweep that is none of its terms.
Spelled spelled(Writer& w, const Sweep& sweep, const Operand& of, ElementType type, const IndexExpression& index);
/// A constant.
Spelled literal(ElementType type, Cell cell);
/// The sweep's expression for one element. Terms that are used twice, or are long, get a name.
Spelled expression(Writer& w, const Sweep& sweep, const IndexExpression& index);
/// Is it the number 0, without a sign?
bool is_zero(const Expression& expression);

}  // namespace tessera::internal::codegen
