// What a program has declared of its command line: from this follow --help's companions, --man and --completion.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal {

struct DeclaredOption {
  std::vector<std::string> names{};    ///< "-n", "--count"; none: it is an argument only
  bool is_argument = false;            ///< may be given without a name
  std::string what{};                  ///< stands for its value; empty: a flag
  std::string help{};                  ///< may have line breaks
  std::vector<std::string> choices{};  ///< values to complete; there may be others
  bool repeatable = false;

  bool is_flag() const { return what.empty(); }
};

struct DeclaredProgram {
  std::string name;     ///< as it was called
  std::string purpose;  ///< a sentence
  std::string footer;   ///< sentences, with line breaks; an empty line between paragraphs
  std::string version;
  std::vector<DeclaredOption> options{};

  /// The option of that name, with its dashes; nullptr if there is none.
  const DeclaredOption* find(std::string_view option) const;
  /// The options that may be given without a name, in the order in which they then are.
  std::vector<const DeclaredOption*> arguments() const;
  /// The name that is most like one that there is not; empty if none is.
  std::string closest(std::string_view option) const;
};

/// On one line: line breaks are made blanks.
std::string one_line(std::string text);

/// The manual page, for section 1, in the man macros of troff.
std::string manual_page(const DeclaredProgram& program);

/// A script for "bash", "zsh" or "fish" that completes the program's command line; Error for another shell.
std::string completion_script(const DeclaredProgram& program, std::string_view shell);

}  // namespace tessera::internal
