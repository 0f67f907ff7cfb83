// The ops of ops.def as an enumeration, with what the compiler must know of each.
#pragma once
#include <cstdint>
#include <string_view>

#include "graph/element.hpp"

namespace tessera {

enum class Op : std::uint8_t {
#define UNARY(name, ...) name,
#define BINARY(name, ...) name,
#define REDUCTION(name, ...) name,
#define STRUCTURAL(name, ...) name,
#include "graph/ops.def"
};

enum class OpGroup : std::uint8_t { unary, binary, reduction, structural };
enum class Operands : std::uint8_t { number, real, integer, logical, index, any };

struct OpInfo {
  std::string_view name;
  OpGroup group;
  Operands operands;
  std::string_view meaning;
  /// The op, or a reduction's combination of two, as an expression of `a` and `b` in a generated kernel: of f32, and of
  /// integers and preds. Empty where there is none.
  std::string_view cuda_real = {}, cuda_integer = {};
};

namespace detail {
inline constexpr OpInfo op_table[] = {
#define UNARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {#name, OpGroup::unary, Operands::operands, meaning, real, integer},
#define BINARY(name, operands, result, host, real, integer, low, high, tolerance, meaning) \
  {#name, OpGroup::binary, Operands::operands, meaning, real, integer},
#define REDUCTION(name, operands, combine, real, integer, identity, meaning) \
  {#name, OpGroup::reduction, Operands::operands, meaning, real, integer},
#define STRUCTURAL(name, meaning) {#name, OpGroup::structural, Operands::any, meaning},
#include "graph/ops.def"
};
}  // namespace detail

constexpr const OpInfo& info(Op op) { return detail::op_table[static_cast<int>(op)]; }
constexpr std::string_view name(Op op) { return info(op).name; }
constexpr bool is_unary(Op op) { return info(op).group == OpGroup::unary; }
constexpr bool is_binary(Op op) { return info(op).group == OpGroup::binary; }
constexpr bool is_reduction(Op op) { return info(op).group == OpGroup::reduction; }
constexpr bool is_elementwise(Op op) { return is_unary(op) || is_binary(op) || op == Op::select || op == Op::cast; }

/// May the op's operands have this element type?
constexpr bool accepts(Op op, ElementType type) {
  switch (info(op).operands) {
    case Operands::number:
      return info(type).computes;
    case Operands::real:
      return info(type).computes && info(type).kind == ElementKind::real;
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

/// The element type of a unary or binary op's result.
constexpr ElementType result_type(Op op, ElementType operand) {
  constexpr ElementType pred = ElementType::pred, i32 = ElementType::i32, f32 = ElementType::f32;
  (void)pred, (void)i32, (void)f32;
  const ElementType same = operand;
  switch (op) {
#define UNARY(name, operands, result, ...) \
  case Op::name:                           \
    return result;
#define BINARY(name, operands, result, ...) \
  case Op::name:                            \
    return result;
#define REDUCTION(...)
#define STRUCTURAL(...)
#include "graph/ops.def"
    default:
      return operand;
  }
}

}  // namespace tessera
