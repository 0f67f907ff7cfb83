#include "jit/options/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "jit/options/files.hpp"

extern char** environ;

namespace tessera::internal {

using namespace std::chrono_literals;

namespace {

void close(auto& source) {
  if (source.file >= 0) ::close(source.file);
  source.file = -1, source.ended = true;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, const Options& options) {
  // A socket, since a write to a pipe that nobody reads would end this process, by SIGPIPE.
  int talk[2] = {-1, -1}, ends[2];
  if (options.talks && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) != 0)
    throw_errno("make a socket to", command[0]);
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    const int reason = errno;
    ::close(talk[0]), ::close(talk[1]);
    errno = reason;
    throw_errno("make a pipe to", command[0]);
  }
  answers_.file = talk[0], output_.file = ends[0];
  const timeval patience{.tv_sec = 60, .tv_usec = 0};  // of a write
  if (talk[0] >= 0) ::setsockopt(talk[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (const int input = options.talks ? talk[1] : options.input; input >= 0)
    ::posix_spawn_file_actions_adddup2(&actions, input, 0);
  else
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  if (!options.reports_errors) ::posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  if (!options.folder.empty()) ::posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int error = ::posix_spawnp(&child_, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (talk[1] >= 0) ::close(talk[1]);
  if (error == 0) return;
  child_ = 0;
  close(output_), close(answers_);
  errno = error;
  throw_errno("run", command[0]);
}

Process::~Process() { end(SIGKILL); }

bool Process::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = answers_.file < 0 ? -1 : ::send(answers_.file, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && answers_.file >= 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

void Process::close_input() {
  if (answers_.file >= 0) ::shutdown(answers_.file, SHUT_WR);
}

bool Process::read_some(Source& from, std::string& text, Deadline deadline) {
  while (!from.ended && from.file >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{.fd = from.file, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[1 << 14];
    const ssize_t got = ::read(from.file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      from.ended = true;
      return false;
    }
    text.append(buffer, static_cast<std::size_t>(got));
    return true;
  }
  return false;
}

bool Process::read(std::string& text, const Limits& limits) {
  const auto deadline = std::chrono::steady_clock::now() + limits.time;
  while (read_some(output_, text, deadline))
    if (text.size() > limits.bytes) return false;
  return output_.ended;
}

std::optional<std::string> Process::read_line(Source& from, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::size_t end;
  while ((end = from.unread.find('\n')) == from.unread.npos)
    if (!read_some(from, from.unread, deadline)) return std::nullopt;
  std::string line = from.unread.substr(0, end);
  from.unread.erase(0, end + 1);
  return line;
}

std::optional<std::string> Process::read_line(std::chrono::milliseconds patience) {
  return read_line(output_, patience);
}
std::optional<std::string> Process::read_answer(std::chrono::milliseconds patience) {
  return read_line(answers_, patience);
}

bool Process::succeeded() {
  const int status = end(0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string Process::how_it_ended(bool kill) {
  const int status = end(kill ? SIGKILL : 0);
  if (WIFSIGNALED(status))
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

int Process::end(int signal) {
  if (child_ <= 0) return status_;
  if (!signal) close_input();
  close(output_);
  if (signal) ::kill(child_, signal);
  while (::waitpid(child_, &status_, 0) < 0 && errno == EINTR) continue;
  child_ = 0;
  close(answers_);
  return status_;
}

}  // namespace tessera::internal
