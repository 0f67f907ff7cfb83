#include "common/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "common/join.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal::bench {

Child::Child(const std::vector<std::string>& argv) : name_(join(argv, " ")) {
  std::array<int, 2> in{}, out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0) throw Error(fmt::format("no pipe: {}", std::strerror(errno)));
  if (::pipe2(out.data(), O_CLOEXEC) != 0) {
    const int reason = errno;
    ::close(in[0]), ::close(in[1]);
    throw Error(fmt::format("no pipe: {}", std::strerror(reason)));
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int failed = ::posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]), ::close(out[1]);
  to_ = in[1], from_ = out[0];
  if (!failed) return;
  ::close(to_), ::close(from_);
  throw Error(fmt::format("'{}' cannot be started: {}", name_, std::strerror(failed)));
}

Child::~Child() {
  ::close(to_), ::close(from_);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {}
}

void Child::gone(std::string_view how) const { throw Error(fmt::format("'{}' {}", name_, how)); }

void Child::write_line(std::string_view line) {
  const std::string text = fmt::format("{}\n", line);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t size = ::write(to_, text.data() + sent, text.size() - sent);
    if (size < 0 && errno != EINTR) gone("does not read its input any more");
    if (size > 0) sent += static_cast<std::size_t>(size);
  }
}

std::string Child::read_line(std::chrono::seconds patience) {
  std::size_t end;
  while ((end = read_.find('\n')) == read_.npos) {
    pollfd ready{from_, POLLIN, 0};
    const int events = ::poll(&ready, 1, static_cast<int>(std::chrono::milliseconds(patience).count()));
    if (events < 0 && errno == EINTR) continue;
    if (events <= 0) {
      ::kill(process_, SIGKILL);
      gone(fmt::format("said nothing for {} seconds, and was ended", patience.count()));
    }
    std::array<char, 4096> buffer;
    const ssize_t size = ::read(from_, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) gone("ended without an answer");
    read_.append(buffer.data(), static_cast<std::size_t>(size));
  }
  std::string line = read_.substr(0, end);
  read_.erase(0, end + 1);
  return line;
}

}  // namespace tessera::internal::bench
