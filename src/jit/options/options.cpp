#include "jit/options/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

void check_choice(const OptionInfo& option, const std::string& value) {
#define RENAMED(...)
#define RENAMED_VALUE(variable_of, old, now)                            \
  if (option.variable == std::string_view(variable_of) && value == old) \
    throw Error(fmt::format("{}={}: the value is called {} now", option.variable, old, now));
#include "jit/options/renamed.def"
  const auto choices = split(option.values);
  if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end())
    throw Error(fmt::format("{}={}: choose from {}", option.variable, value, fmt::join(choices, ", ")));
}

void parse(const OptionInfo& option, const std::string& text, std::string& out) {
  check_choice(option, text);
  out = text;
}
void parse(const OptionInfo& option, const std::string& text, std::vector<std::string>& out) {
  out = split(text);
  for (const std::string& value : out) check_choice(option, value);
}
void parse(const OptionInfo& option, const std::string& text, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0 || out > 1 << 16)
    throw Error(fmt::format("{}={}: expected an integer from 0 to 65536", option.variable, text));
}
void parse(const OptionInfo& option, const std::string& text, bool& out) {
  if (text != "0" && text != "1") throw Error(fmt::format("{}={}: expected 0 or 1", option.variable, text));
  out = text == "1";
}
void parse(const OptionInfo& option, const std::string& text, Arch& out) {
  try {
    out = Arch::parse(text);
  } catch (const Error& e) {
    throw Error(fmt::format("{}={}: {}", option.variable, text, e.what()));
  }
}
void parse(const OptionInfo& option, const std::string& text, ProfileOption& out) {
  out = parse_profile(text, option.variable);
}

}  // namespace

ProfileOption parse_profile(const std::string& text, std::string_view source) {
  ProfileOption option;
  constexpr std::string_view ending = ".json", inside = "inside:";
  for (const std::string& part : split(text)) {
    const bool is_inside = part.starts_with(inside) && part.size() > inside.size();
    const bool is_file = !is_inside && part.ends_with(ending) && part.size() > ending.size();
    if ((!is_file && !is_inside && part != "table") || (is_file && !option.file.empty()) ||
        (is_inside && !option.inside.empty()))
      throw Error(
          fmt::format("{}={}: choose from table, FILE.json and inside:KERNEL, each at most once", source, text));
    if (is_inside)
      option.inside = part.substr(inside.size());
    else
      is_file ? void(option.file = part) : void(option.table = true);
  }
  return option;
}

std::span<const OptionInfo> option_table() {
  static constexpr OptionInfo table[] = {
#define OPTION(type, member, variable, fallback, values, meaning) {variable, fallback, values, meaning},
#include "jit/options/options.def"
  };
  return table;
}

Options read_options(const std::function<std::string(std::string_view)>& lookup) {
#define RENAMED(old, now) \
  if (!lookup(old).empty()) throw Error(old " is called " now " now");
#define RENAMED_VALUE(...)
#include "jit/options/renamed.def"
  Options options;
  const OptionInfo* option = option_table().data();
  const auto value = [&] {
    const std::string text = lookup(option->variable);
    return text.empty() ? std::string(option->fallback) : text;
  };
#define OPTION(type, member, ...)          \
  parse(*option, value(), options.member); \
  ++option;
#include "jit/options/options.def"
  if (options.dump_dir.empty() && std::ranges::find(options.dump, "html") != options.dump.end())
    throw Error("TESSERA_DUMP=html writes pages into a folder: name it in TESSERA_DUMP_DIR");
  return options;
}

const Options& options() {
  static const Options& options = *new Options(read_options([](std::string_view variable) {
    const char* text = std::getenv(std::string(variable).c_str());
    return std::string(text ? text : "");
  }));
  return options;
}

}  // namespace tessera::internal
