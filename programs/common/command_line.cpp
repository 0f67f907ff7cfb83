#include "common/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <span>
#include <sstream>
#include <system_error>

#include "common/declared.hpp"
#include "common/program.hpp"
#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"

#ifndef TESSERA_VERSION
#define TESSERA_VERSION "development build"
#endif

namespace tessera::internal {

namespace {

template <class T>
void convert_number(std::string_view text, T& value, const std::string& expected) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) throw Error(fmt::format("{} is not {}", in_quotes(text), expected));
}

template <std::integral T>
void convert_integer(std::string_view text, T& value) {
  using Limits = std::numeric_limits<T>;
  if (std::is_unsigned_v<T> && text.size() > 1 && text.starts_with('-') &&
      text.find_first_not_of("0123456789", 1) == text.npos)
    throw Error(fmt::format("{} is negative; give 0 or more", in_quotes(text)));
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end)
    throw Error(fmt::format("{} is too {}; give {} at {}", in_quotes(text), text.starts_with('-') ? "small" : "large",
                            text.starts_with('-') ? Limits::min() : Limits::max(),
                            text.starts_with('-') ? "least" : "most"));
  convert_number(text, value, "an integer");
}

/// The names with dashes in a list such as "-p,--prompt,prompt".
std::vector<std::string> names_of(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');)
    if (name.starts_with('-')) names.push_back(name);
  return names;
}

/// The words of a command line, classified as CLI11 will do it.
struct Reading {
  std::vector<std::string> words{};  ///< words that are neither options nor their values
  std::string unknown{};             ///< the first unknown option
  std::string wrong{};               ///< what is wrong with any other option
};

/// Checks a command line before CLI11 does, because CLI11 reports unexpected words from last to first, takes the word
/// after an unknown option for the text, finds -h in -hello, and gives special meanings to some values.
Reading read_arguments(const DeclaredProgram& program, std::span<char* const> arguments) {
  Reading reading;
  std::set<const DeclaredOption*> given;
  const auto take = [&](const DeclaredOption& option, bool has_value) {
    if (!reading.wrong.empty() || option.is_flag()) return;
    if (!has_value) reading.wrong = fmt::format("{} needs a value, {}", option.names.back(), option.what);
    if (!given.insert(&option).second && !option.repeatable)
      reading.wrong = fmt::format("{} is given twice; give it once", option.names.back());
  };
  bool named = true;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (named && word == "--") {
      named = false;
    } else if (!named || !word.starts_with('-') || word.size() == 1) {
      reading.words.emplace_back(word);
    } else if (word.starts_with("--")) {
      const std::string_view name = word.substr(0, word.find('='));
      const DeclaredOption* const option = program.find(name);
      if (!option) return {.unknown = std::string(name)};
      if (name == "--help") return {};  // the rest does not matter
      if (option->is_flag() && name != word && reading.wrong.empty())
        reading.wrong = fmt::format("{} takes no value", name);
      if (!option->is_flag() && name == word) ++i;
      take(*option, i < arguments.size());
    } else {
      for (std::size_t at = 1; at < word.size(); ++at) {
        const DeclaredOption* const option = program.find(fmt::format("-{}", word[at]));
        if (!option) return {.unknown = std::string(word)};
        if (option->is_flag()) continue;
        if (at + 1 == word.size()) ++i;
        take(*option, i < arguments.size());
        break;
      }
      if (word == "-h") return {};
    }
  }
  for (const DeclaredOption* const argument : program.arguments())
    if (given.contains(argument) && !reading.words.empty() && reading.wrong.empty())
      reading.wrong = fmt::format("{} is given, and {}, too; give one of them{}", argument->names.back(),
                                  in_quotes(reading.words[0]),
                                  argument->what == "TEXT" ? ", and a text of several words in quotes" : "");
  return reading;
}

}  // namespace

void convert(const std::string& text, std::string& value) { value = text; }
void convert(const std::string& text, std::int32_t& value) { convert_integer(text, value); }
void convert(const std::string& text, std::uint32_t& value) { convert_integer(text, value); }
void convert(const std::string& text, std::uint64_t& value) { convert_integer(text, value); }
void convert(const std::string& text, float& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc::result_out_of_range || stop != end) return convert_number(text, value, "a number");
  value = std::strtof(text.c_str(), nullptr);  // rounds numbers that are too small, to 0 in the end
  if (std::isinf(value)) throw Error(fmt::format("{} is too large; give a number up to 3.4e38", in_quotes(text)));
}
void convert(const std::string& text, std::vector<std::string>& value) { value.push_back(text); }

void convert(const std::string& text, std::vector<std::int32_t>& value) {
  const auto refuse = [&] { throw Error(fmt::format("{} is not a list of token ids, as in 1,2,3", in_quotes(text))); };
  std::string_view rest = text;
  const auto skip_blanks = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size())); };
  rest.remove_suffix(rest.size() - (rest.find_last_not_of(" \t\r\n") + 1));
  skip_blanks();
  if (rest.starts_with('[') != rest.ends_with(']')) refuse();
  if (rest.starts_with('[')) {
    rest = rest.substr(1, rest.size() - 2);
    skip_blanks();
    if (rest.empty()) return;
  }
  for (;;) {
    const std::string_view id = rest.substr(0, rest.find_first_of(", \t\r\n"));
    std::int32_t number = 0;
    const auto [stop, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (error == std::errc::invalid_argument || stop != id.data() + id.size()) refuse();
    if (error != std::errc()) throw Error(fmt::format("{} is not a token id; it is too large", in_quotes(id)));
    value.push_back(number);
    rest.remove_prefix(id.size());
    skip_blanks();
    if (rest.empty()) return;
    if (!rest.starts_with(',')) continue;
    rest.remove_prefix(1);
    skip_blanks();
  }
}

struct CommandLine::Parser {
  CLI::App app;
  std::span<char* const> arguments;
  DeclaredProgram declared;
  struct Value {
    std::string names;
    CLI::Option* option;
    Take take;
  };
  std::vector<Value> values;

  /// Throws Error with a hint to --help.
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{} (see {} --help)", what, declared.name));
  }
  void check(const Reading& reading) const;
};

CommandLine::CommandLine(int argc, char** argv, const std::string& program, const std::string& purpose)
    : parser_(new Parser{.app = CLI::App(purpose, program),
                         .arguments = std::span<char* const>(argv, static_cast<std::size_t>(argc)),
                         .declared = {.name = program, .purpose = purpose, .footer = {}, .version = TESSERA_VERSION},
                         .values = {}}) {
  parser_->app.set_version_flag("--version", program + " (Tessera " TESSERA_VERSION ")", "Print the version and exit");
  parser_->declared.options = {{.names = {"-h", "--help"}, .help = "Print this help message and exit"},
                               {.names = {"--version"}, .help = "Print the version and exit"}};
}
CommandLine::~CommandLine() = default;

void CommandLine::add(const std::string& names, const std::string& what, const std::string& help,
                      std::vector<std::string> choices, bool repeatable, Take take) {
  // Values are converted after parse(), so that --help takes precedence over errors in them.
  CLI::Option* const option = parser_->app.add_option(names, [](const CLI::results_t&) { return true; }, help);
  option->type_name(what);
  if (repeatable) option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  parser_->values.push_back({names, option, std::move(take)});
  parser_->declared.options.push_back({.names = names_of(names),
                                       .is_argument = option->get_positional(),
                                       .what = what,
                                       .help = help,
                                       .choices = std::move(choices),
                                       .repeatable = repeatable});
}

void CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
  parser_->app.add_flag(names, value, help)->disable_flag_override();
  parser_->declared.options.push_back({.names = names_of(names), .help = help});
}

void CommandLine::footer(const std::string& text) {
  parser_->app.footer(text);
  parser_->declared.footer = text;
}

void CommandLine::Parser::check(const Reading& reading) const {
  std::vector<std::string> arguments;
  for (const DeclaredOption* const argument : declared.arguments()) arguments.push_back(argument->what);
  const bool has_text = std::ranges::count(arguments, "TEXT") > 0;
  if (!reading.unknown.empty()) {
    const std::string meant = declared.closest(reading.unknown);
    refuse(fmt::format("there is no option {}{}", reading.unknown,
                       !meant.empty() ? fmt::format("; did you mean {}?", meant)
                       : has_text     ? "; a text that begins with a dash comes after --"
                                      : ""));
  }
  if (!reading.wrong.empty()) refuse(reading.wrong);
  if (reading.words.size() <= arguments.size()) return;
  const std::string words = fmt::format("{}", fmt::join(reading.words, " "));
  if (has_text) refuse(fmt::format("put a text of several words in quotes: \"{}\"", words));
  if (arguments.empty()) refuse(fmt::format("only options are expected, not {}", words));
  refuse(fmt::format("expected one {} at most, not {}: {}", fmt::join(arguments, " and one "), reading.words.size(),
                     words));
}

void CommandLine::parse() {
  Parser& parser = *parser_;
  CLI::App& app = parser.app;
  bool manual = false;
  std::optional<std::string> shell;
  flag("--man", manual, "Print the manual page and exit; man -l - shows it");
  option("--completion", shell, "SHELL",
         "Print a script that completes this command line in bash, zsh or\nfish, and exit", {"bash", "zsh", "fish"});
  parser.check(read_arguments(parser.declared, parser.arguments.subspan(parser.arguments.empty() ? 0 : 1)));
  try {
    app.parse(static_cast<int>(parser.arguments.size()), parser.arguments.data());
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    throw Answered{};
  } catch (const CLI::CallForVersion& version) {
    print(fmt::format("{}\n", version.what()));
    throw Answered{};
  } catch (const CLI::ParseError& error) {
    parser.refuse(error.what());
  }
  for (const Parser::Value& value : parser.values) {
    try {
      for (const std::string& text : value.option->results()) value.take(text);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", value.names, error.what()));
    }
  }
  if (!manual && !shell) return;
  print(manual ? manual_page(parser.declared) : completion_script(parser.declared, *shell));
  throw Answered{};
}

void CommandLine::refuse(const std::string& what) const { parser_->refuse(what); }

void CommandLine::at_most_one(std::initializer_list<const char*> names) const {
  const char* first = nullptr;
  for (const char* name : names) {
    if (parser_->app.count(name) == 0) continue;
    if (first) throw Error(fmt::format("{} and {} exclude each other; give one of them", first, name));
    first = name;
  }
}

}  // namespace tessera::internal
