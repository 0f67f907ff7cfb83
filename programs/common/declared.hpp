// The declared command line of a program, from which --man and --completion are generated.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal {

struct DeclaredOption {
  std::vector<std::string> names{};    ///< "-n", "--count"; empty: it is only an argument
  bool is_argument = false;            ///< may be given without a name
  std::string what{};                  ///< stands for its value in --help; empty: a flag
  std::string help{};                  ///< may contain line breaks
  std::vector<std::string> choices{};  ///< values for completion; there may be others
  bool repeatable = false;

  bool is_flag() const { return what.empty(); }
};

struct DeclaredProgram {
  std::string name;     ///< as it was called by the user
  std::string purpose;  ///< one sentence
  std::string footer;   ///< sentences, with line breaks; an empty line between paragraphs
  std::string version;
  std::vector<DeclaredOption> options{};

  /// The option with that name, including dashes; nullptr if there is none.
  const DeclaredOption* find(std::string_view option) const;
  /// The options that may be given without a name, in order.
  std::vector<const DeclaredOption*> arguments() const;
  /// The declared name that is most similar to an unknown one; empty if none is similar.
  std::string closest(std::string_view option) const;
};

/// The names most similar to a word that is none of them: at most three, best first; empty if none is similar.
std::vector<std::string> closest(std::string_view word, std::span<const std::string> names);
/// "; did you mean NAME?", or empty.
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

/// Replaces line breaks by blanks.
std::string one_line(std::string text);

/// The manual page, for section 1, in the man macros of troff.
std::string manual_page(const DeclaredProgram& program);

/// A script for "bash", "zsh" or "fish" that completes the program's command line. Throws Error for any other shell.
std::string completion_script(const DeclaredProgram& program, std::string_view shell);

}  // namespace tessera::internal
