#include "codegen/plan/spelling.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tessera::internal::codegen {

std::string_view register_type(ElementType type) {
  if (type == ElementType::pred) return "bool";
  constexpr std::string_view names[] = {"float", "double", "int", "i64", "u32", "u64"};
  return names[static_cast<int>(host_type(type))];
}

std::string_view scratch_type(ElementType type) { return type == ElementType::pred ? "int" : register_type(type); }

std::string_view memory_type(ElementType type) {
  switch (type) {
    case ElementType::f32:
    case ElementType::tf32:
      return "float";
    case ElementType::f64:
      return "double";
    case ElementType::i32:
      return "int";
    default:
      return name(type);
  }
}

namespace {
template <class T>
std::string real_number(T value, std::string_view prefix, std::string_view suffix) {
  if (std::isnan(value)) return fmt::format("{}nan_value()", prefix);
  if (std::isinf(value)) return fmt::format("{}{}infinity()", value > 0 ? "" : "-", prefix);
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text.append(suffix);
}
}  // namespace

std::string number(ElementType type, Cell cell) {
  if (type == ElementType::pred) return cell.i32 ? "true" : "false";
  switch (host_type(type)) {
    case HostType::f32:
      return real_number(cell.f32, "", "f");
    case HostType::f64:
      return real_number(cell.f64, "double_", "");
    case HostType::i32:
      if (cell.i32 == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
      return fmt::format("{}", cell.i32);
    case HostType::i64:
      if (cell.i64 == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807ll - 1)";
      return fmt::format("{}ll", cell.i64);
    case HostType::u32:
      return fmt::format("{}u", cell.u32);
    case HostType::u64:
      return fmt::format("{}ull", cell.u64);
  }
  return "";
}

std::string not_a_number(ElementType type) {
  Cell cell;
  cell = host_type(type) == HostType::f64 ? cell_of(std::numeric_limits<double>::quiet_NaN())
                                          : cell_of(std::numeric_limits<float>::quiet_NaN());
  return number(type, cell);
}

}  // namespace tessera::internal::codegen
