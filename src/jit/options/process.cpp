#include "jit/options/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "jit/options/files.hpp"

extern char** environ;

namespace tessera::internal {

using namespace std::chrono_literals;

Process::Process(const std::vector<std::string>& command, const Options& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("make a pipe to", command[0]);
  output_ = ends[0];
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (options.input >= 0)
    ::posix_spawn_file_actions_adddup2(&actions, options.input, 0);
  else
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  for (const int stream : {1, 2}) ::posix_spawn_file_actions_adddup2(&actions, ends[1], stream);
  if (!options.folder.empty()) ::posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int error = ::posix_spawnp(&child_, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error == 0) return;
  child_ = 0;
  ::close(output_);
  errno = error;
  throw_errno("run", command[0]);
}

Process::~Process() { end(SIGKILL); }

bool Process::read(std::string& text, const Limits& limits) {
  const auto deadline = std::chrono::steady_clock::now() + limits.time;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{.fd = output_, .events = POLLIN, .revents = 0};
    const int ready = left > 0ms ? ::poll(&wait, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || text.size() > limits.bytes) return false;
    char buffer[1 << 14];
    const ssize_t got = ::read(output_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

bool Process::succeeded() { return end(0) == 0; }

int Process::end(int signal) {
  if (child_ <= 0) return -1;
  ::close(output_);
  if (signal) ::kill(child_, signal);
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) continue;
  child_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tessera::internal
