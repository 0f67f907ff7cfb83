#include "codegen/emit_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <cmath>
#include <limits>

namespace tessera {

std::string_view register_type(ElementType type) {
  if (type == ElementType::pred) return "bool";
  constexpr std::string_view names[] = {"float", "int", "i64"};
  return names[static_cast<int>(host_type(type))];
}

std::string_view scratch_type(ElementType type) { return type == ElementType::pred ? "int" : register_type(type); }

std::string_view memory_type(ElementType type) {
  switch (type) {
    case ElementType::f32:
    case ElementType::tf32:
      return "float";
    case ElementType::i32:
      return "int";
    default:
      return name(type);
  }
}

std::string number(ElementType type, Cell cell) {
  if (type == ElementType::pred) return cell.i32 ? "true" : "false";
  switch (host_type(type)) {
    case HostType::f32: {
      if (std::isnan(cell.f32)) return "nan_value()";
      if (std::isinf(cell.f32)) return cell.f32 > 0 ? "infinity()" : "-infinity()";
      std::string text = fmt::format("{}", cell.f32);
      if (text.find_first_of(".e") == text.npos) text += ".0";
      return text + "f";
    }
    case HostType::i32:
      if (cell.i32 == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
      return fmt::format("{}", cell.i32);
    case HostType::i64:
      if (cell.i64 == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807ll - 1)";
      return fmt::format("{}ll", cell.i64);
  }
  return "";
}

std::string atom(std::string text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    if (depth == 0 && (text[i] == ' ' || (i == 0 && (text[i] == '-' || text[i] == '!')))) return "(" + text + ")";
  }
  return text;
}

std::string substitute(std::string_view pattern, const std::string& a, const std::string& b) {
  const bool call = pattern.find('(') != pattern.npos;
  std::string text;
  const auto letter = [&](std::size_t i) {
    return i < pattern.size() && (std::isalnum(static_cast<unsigned char>(pattern[i])) || pattern[i] == '_');
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool operand = (pattern[i] == 'a' || pattern[i] == 'b') && (i == 0 || !letter(i - 1)) && !letter(i + 1);
    const std::string& value = pattern[i] == 'a' ? a : b;
    text += operand ? (call ? value : atom(value)) : std::string(1, pattern[i]);
  }
  return text;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between, std::string_view none) {
  return parts.empty() ? std::string(none) : fmt::format("{}", fmt::join(parts, between));
}

std::string digits(const std::vector<Digit>& map, const std::string& index, int count) {
  std::vector<std::string> parts;
  for (const Digit& digit : map) {
    std::string text = index;
    if (digit.unit != 1) text += fmt::format(" / {}", digit.unit);
    if (digit.unit * digit.size != count) text += fmt::format(" % {}", digit.size);
    if (digit.scale != 1) text += fmt::format(" * {}", digit.scale);
    parts.push_back(std::move(text));
  }
  return joined(parts, " + ", "0");
}

std::string both(const std::string& a, const std::string& b) { return a.empty() ? b : b.empty() ? a : a + " && " + b; }

}  // namespace tessera
