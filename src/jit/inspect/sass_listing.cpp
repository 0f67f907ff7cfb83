#include "jit/inspect/sass_listing.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "graph/text_lines.hpp"

namespace tessera::internal {
namespace {

template <class Number>
std::optional<Number> number_in(std::string_view text, int base = 10) {
  text = trimmed(text);
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

/// Removes a comment "/*...*/" at the start and returns what it contains.
std::optional<std::string_view> take_comment(std::string_view& text) {
  const std::size_t end = text.find("*/");
  if (!text.starts_with("/*") || end == text.npos) return {};
  const std::string_view inside = text.substr(2, end - 2);
  text = trimmed(text.substr(end + 2));
  return inside;
}

/// "/*0050*/  IMAD R4, R4, UR4, R5 ;  /* 0x0000000404047c24 */": address, instruction, and the first half of its
/// encoding.
struct Parsed {
  unsigned address;
  std::string_view text;
  std::optional<std::uint64_t> low;
};
std::optional<Parsed> instruction_in(std::string_view line) {
  const auto address = take_comment(line);
  if (!address || address->starts_with(" ")) return {};
  const auto bytes = number_in<unsigned>(*address, 16);
  if (!bytes) return {};
  const std::size_t end = line.find(';');
  Parsed parsed{*bytes, trimmed(line.substr(0, end)), {}};
  if (end != line.npos) {
    std::string_view rest = trimmed(line.substr(end + 1));
    if (const auto half = take_comment(rest)) parsed.low = number_in<std::uint64_t>(*half, 16);
  }
  return parsed;
}

}  // namespace

std::vector<SassInstruction> sass_listing(std::string_view text) {
  std::vector<SassInstruction> listing;
  std::vector<unsigned> lines;
  std::string label;
  bool continues = false;  // the line before this one names a place in the text, too
  for (const std::string_view whole : text_lines(text)) {
    const std::string_view line = trimmed(whole);
    const bool continued = std::exchange(continues, false);
    constexpr std::string_view place = "//## File ";
    if (line.starts_with(place)) {
      if (!continued) lines.clear();
      // "... line 7 inlined at ..., line 14": the next line says where that is.
      constexpr std::string_view before = "\", line ";
      const std::size_t at = line.find(before);
      if (at != line.npos) {
        std::string_view number = line.substr(at + before.size());
        number = number.substr(0, number.find_first_not_of("0123456789"));
        if (const auto found = number_in<unsigned>(number)) lines.push_back(*found);
      }
      continues = true;
    } else if (const auto parsed = instruction_in(line)) {
      listing.push_back({.address = parsed->address,
                         .label = std::exchange(label, {}),
                         .text = std::string(parsed->text),
                         .encoding = {.low = parsed->low.value_or(0)},
                         .lines = lines});
    } else if (line.starts_with("/* 0x") && !listing.empty()) {
      std::string_view rest = line;
      if (const auto half = take_comment(rest))
        listing.back().encoding.high = number_in<std::uint64_t>(*half, 16).value_or(0);
    } else if (line.ends_with(':') && !line.starts_with(".text.")) {
      label = line.substr(0, line.size() - 1);
      if (!label.starts_with(".L")) lines.clear();  // a function
    }
  }
  return listing;
}

void add_live_registers(std::vector<SassInstruction>& listing, std::string_view text) {
  auto next = listing.begin();  // both have the same order
  for (const std::string_view line : text_lines(text)) {
    const auto parsed = instruction_in(trimmed(line));
    constexpr std::string_view before = "// |";
    const std::size_t column = line.find(before);
    if (!parsed || column == line.npos) continue;
    const auto at =
        std::find_if(next, listing.end(), [&](const SassInstruction& one) { return one.address == parsed->address; });
    if (at == listing.end()) continue;
    const std::string_view count = line.substr(column + before.size());
    at->live_registers = number_in<int>(count.substr(0, count.find('|'))).value_or(0);
    next = std::next(at);
  }
}

}  // namespace tessera::internal
