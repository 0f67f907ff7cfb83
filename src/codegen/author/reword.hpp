// Texts of a kernel in its author's words, for dumps.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan/words.hpp"

namespace tessera::internal::author {

struct RewordedText {
  std::string text;
  std::vector<int> lines;  ///< for each line before, the number from 0 of the line that it became, or was merged with
};

/// Replaces canonical names by the author's, one to one: a text in the author's words is the canonical one with other
/// names. So what a dump shows is what is compiled, and a name of the author never equals another one of the text: "_2"
/// is added where it would.
class Reworder {
 public:
  /// For a kernel's text, as generated, without its helpers; and for texts about it, which may name more.
  Reworder(std::string_view kernel, std::string_view about, const AuthorWords& words);
  /// The kernel's text. Comments that name the ops of a line of the author become that line, once in a row.
  RewordedText text(std::string_view text) const;
  /// Text in which names are words: a plan.
  std::string prose(std::string_view text) const;

 private:
  /// A line of a file of the author, for a comment; "" if it is unknown.
  std::string author_line(std::string_view file, unsigned number) const;

  const AuthorWords& words_;
  std::map<std::string, std::string, std::less<>> names_;
};

}  // namespace tessera::internal::author
