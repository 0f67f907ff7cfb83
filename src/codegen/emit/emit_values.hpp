// The values of a plan: their elements, the coordinates of these in their tiles, and expressions of them.
#pragma once
#include "codegen/emit/emit_writer.hpp"

namespace tessera::internal::codegen {

// --- coordinates

/// The number composed of digits of an index.
IndexExpression digits(const std::vector<Digit>& map, const IndexExpression& index);
/// The number composed of digits of a thread's lane and warp.
IndexExpression digits(const std::vector<std::pair<Factor, int>>& map, const IndexExpression& lane,
                       const IndexExpression& warp);
IndexExpression coordinate(Writer& w, const Layout& layout, int axis, const IndexExpression& index);
/// Coordinate in the tile that a sweep covers, entirely or in part.
IndexExpression coordinate(Writer& w, const Sweep& sweep, int axis, const IndexExpression& index);
/// The condition for the one thread that acts for all that hold copies.
IndexExpression first_copy(Writer& w, const Layout& layout);
/// The condition that the element is in the tile; a layout may cover more.
IndexExpression inside_tile(Writer& w, const Sweep& sweep, const IndexExpression& index);

// --- values

std::string element(Writer& w, ValueId id, const IndexExpression& index);
/// A value with one element, or a number.
IndexExpression scalar(Writer& w, const Operand& operand);
/// Declares the value that a step computes, unless it is declared already; with `array_only`, only arrays.
void declare(Writer& w, ValueId id, bool array_only, std::string_view initial = {});
/// "x[r] = " or "const float x = ".
std::string assign(Writer& w, ValueId id, const IndexExpression& index);
bool is_indexed_by_constants(const Storage& storage);

// --- expressions

/// The text of an expression, and how tightly its operator binds; names, numbers and calls bind tightest.
struct Spelled {
  enum class Binds : std::uint8_t { other, sum, matmul, primary };
  std::string text;
  Binds binds = Binds::primary;
  /// The text, in parentheses unless it binds at least this tightly.
  std::string operand(Binds least = Binds::primary) const { return binds >= least ? text : "(" + text + ")"; }
};

/// A pattern of ops.def, like "a + b", with a, b and c replaced.
Spelled substitute(std::string_view pattern, const Spelled& a, const Spelled& b, const Spelled& c = {});
/// An operand of a sweep other than its terms.
Spelled spelled(Writer& w, const Sweep& sweep, const Operand& of, ElementType type, const IndexExpression& index);
/// A constant.
Spelled literal(ElementType type, Cell cell);
/// The sweep's expression for one element. Terms that are used twice or are long get a name.
Spelled expression(Writer& w, const Sweep& sweep, const IndexExpression& index);
/// Returns true if it is the number +0.
bool is_zero(const Expression& expression);

}  // namespace tessera::internal::codegen
