#include "jit/compile/kernel_first.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/kernel_source.hpp"
#include "graph/in_literal.hpp"

namespace tessera::internal {
namespace {

// The lines between the parts of a text, in a reader's order.
constexpr std::string_view once = "\n#ifndef TESSERA_HELPERS\n#define TESSERA_HELPERS\n#include ";
constexpr std::string_view otherwise = "\n#else\n// ---- helpers ----\n";
constexpr std::string_view last = "#endif";

struct Parts {
  std::string_view decisions{}, helpers{}, kernel{};  // the kernel with its mark
};

/// Removes the text up to and including `mark`; returns what precedes the mark, or nothing if there is none.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == text.npos) return {};
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + mark.size());
  return before;
}

/// The parts of a text in a reader's order.
std::optional<Parts> readers_parts(std::string_view text) {
  const auto decisions = take_until(text, once);
  if (!decisions || !take_until(text, "\n")) return {};
  const auto kernel = take_until(text, otherwise);
  const std::size_t helpers = text.rfind(last);
  if (!kernel || helpers == text.npos || text.find_first_not_of(" \n", helpers + last.size()) != text.npos) return {};
  return Parts{.decisions = *decisions, .helpers = text.substr(0, helpers), .kernel = *kernel};
}

std::string joined(std::string_view decisions, std::string_view helpers, std::string_view kernel) {
  return fmt::format("{}\n{}{}", decisions, helpers, kernel);
}

}  // namespace

std::string kernel_first(std::string_view text, std::string_view self) {
  std::string_view rest = text;
  const auto decisions = take_until(rest, "\n\n");
  const auto helpers = take_until(rest, kernel_mark);
  if (!decisions || !helpers || readers_parts(text)) return std::string(text);
  return fmt::format("{}\n{}{}  // this file, for the helpers at its end\n{}{}{}{}{}\n", *decisions, once, self,
                     kernel_mark, rest, otherwise, *helpers, last);
}

std::string helpers_first(std::string_view text) {
  const std::optional<Parts> parts = readers_parts(text);
  return parts ? joined(parts->decisions, parts->helpers, parts->kernel) : std::string(text);
}

std::string with_own_lines(std::string_view text, const std::filesystem::path& file) {
  const auto lines = [&](std::string_view part) {
    const auto first = std::count(text.begin(), part.begin(), '\n') + 1;
    std::string result = fmt::format("#line {} \"{}\"\n", first, in_literal(file.native()));
    while (!part.empty()) {
      const std::size_t end = std::min(part.find('\n'), part.size() - 1) + 1;
      const std::string_view line = part.substr(0, end);
      part.remove_prefix(end);
      result += line.starts_with("#line ") ? "\n" : line;
    }
    return result;
  };
  const std::optional<Parts> parts = readers_parts(text);
  return parts ? joined(lines(parts->decisions), lines(parts->helpers), lines(parts->kernel)) : lines(text);
}

}  // namespace tessera::internal
