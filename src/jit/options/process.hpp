// A child process, run without a shell: its arguments are passed unchanged, whatever characters they contain.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal {

class Process {
 public:
  struct Options {
    std::string folder = {};      ///< its working directory; empty: that of this process
    int input = -1;               ///< a file descriptor for its stdin; -1: /dev/null
    bool talks = false;           ///< its stdin is a socket, to write() and from read_answer(), instead
    bool reports_errors = false;  ///< its stderr is that of this process; otherwise it is read like its stdout
  };
  /// Searches for command[0] in PATH if it has no slash. Throws std::system_error that names it.
  explicit Process(const std::vector<std::string>& command) : Process(command, Options()) {}
  Process(const std::vector<std::string>& command, const Options& options);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  /// Kills the process if it is still running.
  ~Process();

  /// Writes to the stdin of a process that talks; false if it has read nothing for a minute, or reads no more.
  bool write(std::span<const std::byte> bytes);
  bool write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  /// The end of its stdin.
  void close_input();

  struct Limits {
    std::chrono::milliseconds time = std::chrono::hours(24);
    std::size_t bytes = std::numeric_limits<std::size_t>::max();
  };
  /// Reads all output until the process ends; false if it takes too long or writes too much.
  bool read(std::string& text, const Limits& limits);
  bool read(std::string& text) { return read(text, Limits()); }
  /// The next line of its output, without the line's end. None: there was none in time, or the output has ended.
  std::optional<std::string> read_line(std::chrono::milliseconds patience);
  /// The same of what it writes to the socket that is its stdin.
  std::optional<std::string> read_answer(std::chrono::milliseconds patience);
  /// Has the output, or the socket, ended?
  bool output_ended() const { return output_.ended; }
  bool answers_ended() const { return answers_.ended; }

  /// True if the process exited with status 0. To be called after read().
  bool succeeded();
  /// Waits for the process to end, after killing it if `kill`: "exited with status 1", "was ended by signal 11
  /// (Segmentation fault)".
  std::string how_it_ended(bool kill);

 private:
  struct Source {
    int file = -1;
    bool ended = false;
    std::string unread = {};  ///< of lines
  };
  using Deadline = std::chrono::steady_clock::time_point;
  /// Appends what comes next to `text`; false if nothing came in time, or it has ended.
  static bool read_some(Source& from, std::string& text, Deadline deadline);
  static std::optional<std::string> read_line(Source& from, std::chrono::milliseconds patience);
  /// Sends a signal (unless it is 0), waits for the process to end, and returns the status that waitpid gives.
  int end(int signal);

  pid_t child_ = 0;
  int status_ = -1;
  Source output_, answers_;
};

}  // namespace tessera::internal
