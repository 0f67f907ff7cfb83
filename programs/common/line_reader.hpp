// Lines that a user types, or that come through a pipe.
#pragma once
#include <memory>
#include <string>

#include "common/interrupt.hpp"

namespace tessera::internal {

/// Reads stdin line by line. If stdin and stderr are terminals, prints the prompt "> " on stderr. A build with libedit
/// then has line editing, and a history with the arrow keys; a build without it reads lines as the terminal delivers
/// them.
class LineReader {
 public:
  explicit LineReader(const Interrupt& interrupt);
  ~LineReader();

  enum class Got { line, interrupt, end };
  /// The next line, without its Unix or Windows line ending; the first also without a byte order mark. An interrupt is
  /// Ctrl-C, and discards what was typed. Throws Error if stdin cannot be read or has a line of more than 256 MiB.
  Got next(std::string& line);

  bool is_terminal() const { return terminal_; }

 private:
  Got next_of_stream(std::string& line);

  struct Editor;
  const Interrupt& interrupt_;
  bool terminal_;
  std::unique_ptr<Editor> editor_;  // null: no line editing
  std::string held_;                // input read so far that is not yet a complete line
  bool first_ = true;
};

}  // namespace tessera::internal
