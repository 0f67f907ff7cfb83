// Lines that a person types, or that come through a pipe.
#pragma once
#include <memory>
#include <string>

#include "common/interrupt.hpp"

namespace tessera::internal {

/// Reads stdin line by line. Where stdin and stderr are terminals a line stands behind "> " on stderr and, in a build
/// with libedit, can be edited, and earlier ones come back by the arrow keys; a build without reads it as the terminal
/// gives it.
class LineReader {
 public:
  explicit LineReader(const Interrupt& interrupt);
  ~LineReader();

  enum class Got { line, interrupt, end };
  /// The next line without its end, of Unix or Windows, and the first without a byte order mark. An interrupt is
  /// Ctrl-C, and takes what was typed of the line. Error if stdin cannot be read or has a line of more than 256 MiB.
  Got next(std::string& line);

  bool is_terminal() const { return terminal_; }

 private:
  Got next_of_stream(std::string& line);

  struct Editor;
  const Interrupt& interrupt_;
  bool terminal_;
  std::unique_ptr<Editor> editor_;  // none: no editing
  std::string held_;                // was read, and is not a line yet
  bool first_ = true;
};

}  // namespace tessera::internal
