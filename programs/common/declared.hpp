// What a program has declared of its command line: from this follow --help's companions, --man and --completion.
#pragma once
#include <span>
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

/// Which of `names` are most like a word that is none of them: three at most, the best first; none if nothing is like
/// it.
std::vector<std::string> closest(std::string_view word, std::span<const std::string> names);
/// "; did you mean NAME?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

/// On one line: line breaks are made blanks.
std::string one_line(std::string text);

/// The manual page, for section 1, in the man macros of troff.
std::string manual_page(const DeclaredProgram& program);

/// A script for "bash", "zsh" or "fish" that completes the program's command line; Error for another shell.
std::string completion_script(const DeclaredProgram& program, std::string_view shell);

}  // namespace tessera::internal
