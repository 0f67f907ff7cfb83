// A child process, run without a shell: its arguments are passed unchanged, whatever characters they contain.
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
    std::string folder = {};  ///< its working directory; empty: that of this process
    int input = -1;           ///< a file descriptor for its stdin; -1: /dev/null
  };
  /// Searches for command[0] in PATH if it has no slash. Throws std::system_error that names it.
  explicit Process(const std::vector<std::string>& command) : Process(command, Options()) {}
  Process(const std::vector<std::string>& command, const Options& options);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  /// Kills the process if it is still running.
  ~Process();

  struct Limits {
    std::chrono::milliseconds time = std::chrono::hours(24);
    std::size_t bytes = std::numeric_limits<std::size_t>::max();
  };
  /// Reads all output of both streams until the process ends; false if it takes too long or writes too much.
  bool read(std::string& text, const Limits& limits);
  bool read(std::string& text) { return read(text, Limits()); }
  /// True if the process exited with status 0. To be called after read().
  bool succeeded();

 private:
  /// Sends a signal (unless it is 0), waits for the process to end, and returns its exit status; -1 if there is none.
  int end(int signal);

  pid_t child_ = 0;
  int output_ = -1;
};

}  // namespace tessera::internal
