// Another program, run without a shell: its arguments are what they are, whatever characters they have.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace tessera::internal {

class Process {
 public:
  struct Options {
    std::string folder = {};  ///< where it runs; empty: where this process does
    int input = -1;           ///< a file that it reads as its stdin; -1: none
  };
  /// Looks for command[0] in PATH where it has no slash. Throws std::system_error that names it.
  explicit Process(const std::vector<std::string>& command) : Process(command, Options()) {}
  Process(const std::vector<std::string>& command, const Options& options);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  /// Ends it, if it has not ended.
  ~Process();

  struct Limits {
    std::chrono::milliseconds time = std::chrono::hours(24);
    std::size_t bytes = std::numeric_limits<std::size_t>::max();
  };
  /// All that it writes, on both streams, until it ends; false if that takes too long or is too much.
  bool read(std::string& text, const Limits& limits);
  bool read(std::string& text) { return read(text, Limits()); }
  /// After read().
  bool succeeded();

 private:
  /// Sends a signal, waits for the end and gives the exit status, -1 if there is none.
  int end(int signal);

  pid_t child_ = 0;
  int output_ = -1;
};

}  // namespace tessera::internal
