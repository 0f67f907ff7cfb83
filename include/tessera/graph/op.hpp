// The ops of ops.def as an enumeration, with the properties that the compiler needs.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tessera/graph/element.hpp"

namespace tessera {
namespace [[gnu::visibility("default")]] internal {

enum class Op : std::uint8_t {
#define UNARY(name, ...) name,
#define BINARY(name, ...) name,
#define TERNARY(name, ...) name,
#define REDUCTION(name, ...) name,
#define SCAN(name, ...) name,
#define STRUCTURAL(name, ...) name,
#include "tessera/graph/ops.def"
};

enum class OpGroup : std::uint8_t { unary, binary, ternary, reduction, scan, structural };
enum class Operands : std::uint8_t { number, real, single, integer, logical, index, any };

/// The kind of an operand. The last four stand for any number of operands, each of which is a value or an index.
enum class OperandKind : std::uint8_t {
  value, condition, index, rows, view, loop, values, indices, further_indices, tiles
};
/// The contents of `Node::attr`.
enum class Attribute : std::uint8_t {
  none, number, axis, stepped, windows, scan, sorted, grid_axis, axes, steps, parameter, position, region, text, function,
  order
};
/// The role of an op. All from `write` on are effects; of these only atomics have a value.
enum class OpRole : std::uint8_t { elementwise, line, value, view, read, write, atomic, region, claim, report };

/// The operands of an op, in order.
struct OperandKinds {
  OperandKind kind[4] = {};
  std::size_t count = 0;
  constexpr OperandKinds(std::same_as<OperandKind> auto... kinds) : kind{kinds...}, count(sizeof...(kinds)) {}
};

struct OpInfo {
  std::string_view name;
  OpGroup group;
  Operands operands;
  OperandKinds in;
  Attribute attribute;
  OpRole role;
  std::string_view meaning;
  /// The op, or the combination of two elements by a reduction, as an expression of `a`, `b` and `c` in a generated
  /// kernel: one for floating-point types, one for integers and preds. Empty if the op does not take such types.
  std::string_view cuda_real = {}, cuda_integer = {};
};

namespace detail {
namespace table {
using enum OperandKind;
inline constexpr OpInfo ops[] = {
#define ELEMENTWISE(name, group, operands, in, real, integer, meaning) \
  {#name, OpGroup::group, Operands::operands, in, Attribute::none, OpRole::elementwise, meaning, real, integer},
#define UNARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  ELEMENTWISE(name, unary, operands, OperandKinds(value), real, integer, meaning)
#define BINARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  ELEMENTWISE(name, binary, operands, OperandKinds(value, value), real, integer, meaning)
#define TERNARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  ELEMENTWISE(name, ternary, operands, OperandKinds(value, value, value), real, integer, meaning)
#define REDUCTION(name, operands, combine, real, integer, identity, meaning)                                         \
  {#name,  OpGroup::reduction, Operands::operands, OperandKinds(value), Attribute::axis, OpRole::value, meaning, real, \
   integer},
#define SCAN(name, reduction, meaning) \
  {#name, OpGroup::scan, Operands::number, OperandKinds(value), Attribute::scan, OpRole::value, meaning},
#define STRUCTURAL(name, operands, attribute, role, meaning) \
  {#name, OpGroup::structural, Operands::any, OperandKinds operands, Attribute::attribute, OpRole::role, meaning},
#define ATOMIC_TILES(...) __VA_ARGS__
#define ATOMIC_AT(name, operands, in, meaning) \
  {name, OpGroup::structural, Operands::operands, OperandKinds in, Attribute::order, OpRole::atomic, meaning},
#define ATOMIC(name, operands, moved, combine, meaning)                      \
  ATOMIC_AT(#name, operands, (ATOMIC_TILES moved, view, indices), meaning) \
  ATOMIC_AT(#name "_elements", operands, (ATOMIC_TILES moved, view, tiles), meaning)
#include "tessera/graph/ops.def"
#undef ATOMIC_AT
#undef ELEMENTWISE
};
}  // namespace table
}  // namespace detail

constexpr const OpInfo& info(Op op) { return detail::table::ops[static_cast<int>(op)]; }
constexpr std::string_view name(Op op) { return info(op).name; }
constexpr bool is_unary(Op op) { return info(op).group == OpGroup::unary; }
constexpr bool is_binary(Op op) { return info(op).group == OpGroup::binary; }
constexpr bool is_ternary(Op op) { return info(op).group == OpGroup::ternary; }
constexpr bool is_reduction(Op op) { return info(op).group == OpGroup::reduction; }
constexpr bool is_scan(Op op) { return info(op).group == OpGroup::scan; }
/// Is it sort or argsort?
constexpr bool is_sort(Op op) { return info(op).attribute == Attribute::sorted; }
constexpr bool is_elementwise(Op op) { return info(op).role == OpRole::elementwise; }
/// Is it elementwise, defined by the table's host and CUDA expressions?
constexpr bool is_arithmetic(Op op) { return is_unary(op) || is_binary(op) || is_ternary(op); }
/// Is the op's tolerance relative to max(|exact|, 1), rather than to max(|exact|, smallest normal)?
constexpr bool has_absolute_tolerance(Op op) {
  return op == Op::sin_approx || op == Op::cos_approx || op == Op::log2_approx;
}
/// Does its step iterate over the lines of its operand along the axis?
constexpr bool is_along_lines(Op op) { return is_reduction(op) || info(op).role == OpRole::line; }
constexpr bool is_view(Op op) { return info(op).role == OpRole::view; }
/// Is it a view of a whole tensor, on which all others are based?
constexpr bool is_base_view(Op op) { return is_view(op) && info(op).attribute == Attribute::parameter; }
constexpr bool is_effect(Op op) { return info(op).role >= OpRole::write; }
/// Does it read or write memory? An atomic does both, and counts as a write.
constexpr bool is_read(Op op) { return info(op).role == OpRole::read; }
constexpr bool is_write(Op op) { return info(op).role == OpRole::write || info(op).role == OpRole::atomic; }
constexpr bool is_atomic(Op op) { return info(op).role == OpRole::atomic; }
/// Does it have a tile as its value?
constexpr bool has_value(Op op) { return !is_view(op) && (!is_effect(op) || is_atomic(op)); }
/// Does it own a region, which it runs?
constexpr bool has_region(Op op) { return info(op).attribute == Attribute::region; }

/// The reduction whose combination a scan uses.
constexpr Op reduction_of(Op scan) {
  switch (scan) {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#define SCAN(name, reduction, ...) \
  case Op::name:                   \
    return Op::reduction;
#include "tessera/graph/ops.def"
    default:
      return scan;
  }
}

/// The index of the first operand of a kind, or -1.
constexpr int operand_of(Op op, OperandKind kind) {
  const OperandKinds& in = info(op).in;
  for (std::size_t i = 0; i < in.count; ++i)
    if (in.kind[i] == kind) return static_cast<int>(i);
  return -1;
}
/// The index of the last operand if it stands for any number of operands, or -1.
constexpr int repeated_operand(Op op) {
  const OperandKinds& in = info(op).in;
  const bool repeated = in.count > 0 && in.kind[in.count - 1] >= OperandKind::values;
  return repeated ? static_cast<int>(in.count) - 1 : -1;
}
/// Does it access single elements, by tiles of indices?
constexpr bool by_elements(Op op) { return operand_of(op, OperandKind::tiles) >= 0; }
/// The index of the view operand of an op that accesses memory or inspects a view, or -1.
constexpr int view_operand(Op op) { return operand_of(op, OperandKind::view); }
/// For an atomic on elements, the same atomic at a tile position; other ops are returned unchanged.
constexpr Op at_position(Op op) {
  switch (op) {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#define ATOMIC(name, ...)    \
  case Op::name##_elements: \
    return Op::name;
#include "tessera/graph/ops.def"
    default:
      return op;
  }
}
/// For an atomic at a tile position, the same atomic on elements; other ops are returned unchanged.
constexpr Op on_elements(Op op) {
  switch (op) {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#define ATOMIC(name, ...) \
  case Op::name:          \
    return Op::name##_elements;
#include "tessera/graph/ops.def"
    default:
      return op;
  }
}
/// The kind of operand `i` of a node that has that many operands; never one of the kinds that stand for several.
constexpr OperandKind operand_kind(Op op, std::size_t i) {
  const OperandKinds& in = info(op).in;
  const OperandKind kind = in.kind[i < in.count || in.count == 0 ? i : in.count - 1];
  switch (kind) {
    case OperandKind::values:
    case OperandKind::tiles:
      return OperandKind::value;
    case OperandKind::indices:
    case OperandKind::further_indices:
      return OperandKind::index;
    default:
      return kind;
  }
}

/// May the op's operands have this element type?
constexpr bool accepts(Op op, ElementType type) {
  switch (info(op).operands) {
    case Operands::number:
      return info(type).computes;
    case Operands::real:
      return info(type).computes && info(type).kind == ElementKind::real;
    case Operands::single:
      return type == ElementType::f32;
    case Operands::integer:
      return info(type).computes && info(type).kind == ElementKind::integer;
    case Operands::logical:
      return type == ElementType::pred;
    case Operands::index:
      return type == ElementType::i64;
    case Operands::any:
      return true;
  }
  return false;
}

/// The element type of the result of a unary, binary or ternary op.
constexpr ElementType result_type(Op op, ElementType operand) {
  using enum ElementType;  // the names that ops.def uses
  const ElementType same = operand;
  switch (op) {
#define UNARY(name, operands, result, ...) \
  case Op::name:                           \
    return result;
#define BINARY UNARY
#define TERNARY UNARY
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "tessera/graph/ops.def"
    default:
      return operand;
  }
}

}  // namespace internal
}  // namespace tessera
