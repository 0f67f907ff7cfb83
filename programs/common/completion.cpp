#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "common/declared.hpp"
#include "model/files/input_file.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {

namespace {

std::string join(const std::vector<std::string>& words, const char* between) {
  return fmt::format("{}", fmt::join(words, between));
}

std::string with_backslashes(std::string_view text, std::string_view before) {
  std::string out;
  for (const char c : text) {
    if (before.find(c) != before.npos) out += '\\';
    out += c;
  }
  return out;
}

/// In single quotes for bash and zsh, which have no escapes within them.
std::string shell_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// The name of the shell function that completes the program's command line.
std::string function_of(const DeclaredProgram& program) {
  std::string name = "_complete_" + program.name;
  std::ranges::replace_if(name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

// ---- bash

/// The command that completes the value of an option; ":" if it cannot be completed.
std::string bash_value(const DeclaredOption& option) {
  const auto from = [](const std::string& generator) {
    return fmt::format("mapfile -t COMPREPLY < <(compgen {} -- \"$word\")", generator);
  };
  if (option.what == "FILE") return from("-f") + "; compopt -o filenames 2>/dev/null";
  if (option.what == "DIR") return from("-d") + "; compopt -o filenames 2>/dev/null";
  if (!option.choices.empty()) return from("-W " + shell_word(join(option.choices, " ")));
  return ":";
}

std::string bash(const DeclaredProgram& program) {
  std::string cases;
  std::vector<std::string> names;
  for (const DeclaredOption& option : program.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
    if (!option.names.empty() && !option.is_flag())
      cases += fmt::format("    {}) {}; return ;;\n", join(option.names, "|"), bash_value(option));
  }
  // bash does not tell which of several arguments a word is. The only program with two arguments takes numbers, which
  // cannot be completed.
  const std::vector<const DeclaredOption*> arguments = program.arguments();
  return fmt::format(
      R"(# Completes the command line of {name}: source <({name} --completion bash)
{function}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD - 1]}} named=1 i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do [[ ${{COMP_WORDS[i]}} != -- ]] || named=0; done
  # --option=word comes as three words.
  if [[ $word == = ]]; then word=; elif [[ $option == = ]]; then option=${{COMP_WORDS[COMP_CWORD - 2]}}; fi
  if ((named)); then case $option in
{cases}  esac; fi
  if ((named)) && [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W {names} -- "$word")
    return
  fi
  {argument}
}}
complete -F {function} {name}
)",
      fmt::arg("name", program.name), fmt::arg("function", function_of(program)), fmt::arg("cases", cases),
      fmt::arg("names", shell_word(join(names, " "))),
      fmt::arg("argument", arguments.size() == 1 ? bash_value(*arguments[0]) : ":"));
}

// ---- zsh

/// ":TYPE:(f32 bf16)", in the syntax of _arguments.
std::string zsh_value(const DeclaredOption& option) {
  const std::string action = option.what == "FILE"    ? "_files"
                             : option.what == "DIR"   ? "_files -/"
                             : option.choices.empty() ? " "
                                                      : fmt::format("({})", join(option.choices, " "));
  return fmt::format(":{}:{}", with_backslashes(option.what, ":"), action);
}

std::string zsh(const DeclaredProgram& program) {
  std::string lines;
  int arguments = 0;
  for (const DeclaredOption& option : program.options) {
    const std::string explained = fmt::format("[{}]", with_backslashes(one_line(option.help), "[]\\"));
    for (const std::string& name : option.names) {
      // Each name excludes the others and itself. The value of -n may be in the same word, that of --name after "=".
      const std::string excluded = option.repeatable ? "*" : fmt::format("({})", join(option.names, " "));
      const char* const joins = option.is_flag() ? "" : name.starts_with("--") ? "=" : "+";
      const std::string spec =
          fmt::format("{}{}{}{}{}", excluded, name, joins, explained, option.is_flag() ? "" : zsh_value(option));
      lines += fmt::format(" \\\n    {}", shell_word(spec));
    }
    if (option.is_argument)
      lines += fmt::format(" \\\n    {}", shell_word(fmt::format("{}{}", ++arguments, zsh_value(option))));
  }
  return fmt::format(
      R"(#compdef {name}
# Completes the command line of {name}: source <({name} --completion zsh)
{function}() {{
  _arguments -s -S{lines}
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then {function} "$@"; else compdef {function} {name}; fi
)",
      fmt::arg("name", program.name), fmt::arg("function", function_of(program)), fmt::arg("lines", lines));
}

// ---- fish

/// In single quotes for fish.
std::string fish_quoted(std::string_view text) { return fmt::format("'{}'", with_backslashes(text, "'\\")); }

std::string fish_value(const DeclaredOption& option) {
  if (option.what == "FILE") return " -r -F";
  if (option.what == "DIR") return " -x -a '(__fish_complete_directories)'";
  if (!option.choices.empty()) return " -x -a " + fish_quoted(join(option.choices, " "));
  return " -x";
}

std::string fish(const DeclaredProgram& program) {
  std::string lines;
  for (const DeclaredOption& option : program.options) {
    std::string line = fmt::format("complete -c {}", program.name);
    for (const std::string& name : option.names)
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.names.empty())
      lines += fmt::format("{}{} -d {}\n", line, option.is_flag() ? "" : fish_value(option),
                           fish_quoted(one_line(option.help)));
    if (option.is_argument && !option.choices.empty())
      lines += fmt::format("complete -c {} -a {}\n", program.name, fish_quoted(join(option.choices, " ")));
  }
  const bool takes_files = std::ranges::any_of(program.arguments(), [](const DeclaredOption* argument) {
    return argument->what == "FILE" || argument->what == "DIR";
  });
  return fmt::format("# Completes the command line of {0}: {0} --completion fish | source\n{1}{2}", program.name,
                     takes_files ? "" : fmt::format("complete -c {} -f\n", program.name), lines);
}

}  // namespace

std::string completion_script(const DeclaredProgram& program, std::string_view shell) {
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program);
  if (shell == "fish") return fish(program);
  throw Error(fmt::format("--completion {}: choose bash, zsh or fish", in_quotes(shell)));
}

}  // namespace tessera::internal
