// Runs programs as a user does: through pipes, and in a terminal.
#pragma once
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/support.hpp"
#include "tessera/model/utf8.hpp"

using Arguments = std::vector<std::string>;

struct Run {
  int status = -1;  ///< exit status; 128 plus the signal that ended it; 1000 if it took too long
  std::string out, err;
  std::vector<std::string> parts;  ///< of stdout, as they arrived
};

struct Streams {
  std::string input{};           ///< at most the capacity of a pipe
  const char* output = nullptr;  ///< a file instead of the pipe
  bool unread = false;           ///< the reader of stdout has exited
};

inline void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

struct Pipe {
  Pipe() { require(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe2"); }
  Pipe(const Pipe&) = delete;
  ~Pipe() { close(0), close(1); }
  void close(std::size_t end) {
    if (ends[end] >= 0) ::close(std::exchange(ends[end], -1));
  }
  std::array<int, 2> ends{-1, -1};
};

/// Starts a program on the test's device, if users have that device too. `environment` has NAME=value.
inline pid_t start(const std::string& program, const Arguments& arguments, posix_spawn_file_actions_t& actions,
                   Arguments environment = {}, bool session = false) {
  const std::string path = program[0] == '/' ? program : TESSERA_BIN_DIR "/" + program;
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string device = test_device_name();
  if (device == "cpu" || device.starts_with("cuda")) environment.push_back("TESSERA_DEVICE=" + device);
  std::vector<char*> variables;  // for duplicate names the first counts
  for (std::string& variable : environment) variables.push_back(variable.data());
  for (char** variable = environ; *variable; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (session) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t child = -1;
  errno = ::posix_spawn(&child, path.c_str(), &actions, &attributes, argv.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  require(errno == 0, path.c_str());
  return child;
}

/// The exit status, or 128 plus the signal that ended it.
inline int status_of(pid_t child) {
  int status = 0;
  require(::waitpid(child, &status, 0) == child, "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline Run run(const std::string& program, const Arguments& arguments, const Streams& streams = {}) {
  Pipe in, out, err;
  require(::write(in.ends[1], streams.input.data(), streams.input.size()) == std::ssize(streams.input), "write");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.ends[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out.ends[1], 1);
  if (streams.output) posix_spawn_file_actions_addopen(&actions, 1, streams.output, O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, err.ends[1], 2);
  if (streams.unread) out.close(0);
  const pid_t child = start(program, arguments, actions);
  posix_spawn_file_actions_destroy(&actions);
  in.close(0), in.close(1), out.close(1), err.close(1);

  Run result;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  bool late = false;
  while (!late && (out.ends[0] >= 0 || err.ends[0] >= 0)) {
    std::array<pollfd, 2> ready{{{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), 1000);
    for (std::size_t i = 0; i < 2; ++i) {
      if (!ready[i].revents) continue;
      std::array<char, 1 << 16> buffer;
      const ssize_t size = ::read(ready[i].fd, buffer.data(), buffer.size());
      if (size <= 0) {
        (i == 0 ? out : err).close(0);
        continue;
      }
      const std::string_view part(buffer.data(), static_cast<std::size_t>(size));
      (i == 0 ? result.out : result.err) += part;
      if (i == 0) result.parts.emplace_back(part);
    }
    late = std::chrono::steady_clock::now() > deadline;
  }
  if (late) ::kill(child, SIGKILL);
  const int status = status_of(child);
  result.status = late ? 1000 : status;
  return result;
}

/// A program that receives input while it runs, through pipes or in a terminal of its own, which then shows all its
/// output.
class Talk {
 public:
  enum class Through { pipes, nonblocking_pipes, terminal };

  Talk(Through through, const std::string& program, const Arguments& arguments, const Arguments& environment = {}) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (through == Through::terminal) {
      in_ = out_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
      require(in_ >= 0 && ::grantpt(in_) == 0 && ::unlockpt(in_) == 0, "posix_openpt");
      posix_spawn_file_actions_addopen(&actions, 0, ::ptsname(in_), O_RDWR, 0);  // the session's, which has none yet
      for (const int fd : {1, 2}) posix_spawn_file_actions_adddup2(&actions, 0, fd);
      Arguments variables = environment;
      variables.emplace_back("TERM=xterm");
      child_ = start(program, arguments, actions, variables, true);
    } else {
      Pipe in, out;
      if (through == Through::nonblocking_pipes)  // the program's ends
        for (const int end : {in.ends[0], out.ends[1]}) require(::fcntl(end, F_SETFL, O_NONBLOCK) == 0, "fcntl");
      posix_spawn_file_actions_adddup2(&actions, in.ends[0], 0);
      posix_spawn_file_actions_adddup2(&actions, out.ends[1], 1);
      posix_spawn_file_actions_addopen(&actions, 2, (folder_ / "err").c_str(), O_WRONLY | O_CREAT, 0600);
      child_ = start(program, arguments, actions, environment);
      in_ = std::exchange(in.ends[1], -1), out_ = std::exchange(out.ends[0], -1);
    }
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Talk() {
    if (child_ > 0) ::kill(child_, SIGKILL), status_of(child_);
    if (in_ != out_) hang_up();
    ::close(out_);
  }
  Talk(const Talk&) = delete;

  void type(std::string_view text) { require(::write(in_, text.data(), text.size()) == std::ssize(text), "write"); }
  /// Closes the input pipe.
  void hang_up() {
    if (in_ >= 0) ::close(std::exchange(in_, -1));
  }
  void signal(int number) { require(::kill(child_, number) == 0, "kill"); }

  /// The program's output up to and including `text`; throws if that does not appear.
  std::string until(std::string_view text) {
    const auto deadline = in_a_minute();
    std::size_t at = 0;
    while ((at = read_.find(text)) == read_.npos)
      if (!more(deadline)) throw std::runtime_error(fmt::format("'{}' does not come, but '{}'", text, read_));
    const std::string part = read_.substr(0, at + text.size());
    read_.erase(0, part.size());
    return part;
  }
  /// Its output until it exits.
  std::string rest() {
    const auto deadline = in_a_minute();
    while (more(deadline)) continue;
    return std::exchange(read_, {});
  }
  int status() { return status_of(std::exchange(child_, -1)); }
  std::string err() const { return read_text(folder_ / "err"); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  static Time in_a_minute() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

  bool more(Time deadline) {
    pollfd ready{out_, POLLIN, 0};
    if (::poll(&ready, 1, 60000) != 1 || std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error(fmt::format("nothing comes after '{}'", read_));
    std::array<char, 4096> buffer;
    const ssize_t size = ::read(out_, buffer.data(), buffer.size());
    if (size > 0) read_.append(buffer.data(), static_cast<std::size_t>(size));
    return size > 0;  // a terminal without a program is an error
  }

  TempDir folder_;
  int in_ = -1, out_ = -1;
  pid_t child_ = -1;
  std::string read_;
};

/// A program's stdout; the run must succeed.
inline std::string output(const std::string& program, const Arguments& arguments, const Streams& streams = {}) {
  const Run result = run(program, arguments, streams);
  INFO(program << ' ' << fmt::format("{}", fmt::join(arguments, " ")) << '\n' << result.err);
  CHECK(result.status == 0);
  return result.out;
}

inline void check_refused(const std::string& program, const Arguments& arguments,
                          std::initializer_list<std::string_view> parts, const Streams& streams = {}) {
  const Run result = run(program, arguments, streams);
  INFO(program << ' ' << fmt::format("{}", fmt::join(arguments, " ")) << '\n' << result.err);
  CHECK(result.status == 2);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with(program + ": error: "));
  CHECK(result.err.ends_with('\n'));
  CHECK(says(std::string_view(result.err).substr(0, result.err.empty() ? 0 : result.err.size() - 1), parts));
  CHECK_FALSE(tessera::internal::find_invalid_utf8(result.err));
}
