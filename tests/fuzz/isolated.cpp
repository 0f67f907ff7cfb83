#include "fuzz/isolated.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#include "tessera/graph/error.hpp"

namespace tessera::internal::fuzz {
namespace {

constexpr std::string_view threw = "threw: ";

[[noreturn]] void be_child(int pipe, const std::function<void(const std::function<void(std::string_view)>&)>& work) {
  ::setpgid(0, 0);  // together with the compilers that it starts
  const auto say = [pipe](std::string_view line) {
    const std::string text = fmt::format("{}\n", line);
    if (::write(pipe, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(1);
  };
  try {
    work(say);
  } catch (const std::exception& error) {
    say(fmt::format("{}{}", threw, error.what()));
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

std::string isolated(const std::function<void(const std::function<void(std::string_view line)>& say)>& work,
                     std::chrono::seconds silence, const std::function<void(std::string_view line)>& on_line) {
  // A child that another thread starts meanwhile must not keep this pipe open.
  static std::mutex starting;
  std::unique_lock lock(starting);
  int ends[2];
  if (::pipe(ends) != 0) throw Error("cannot make a pipe");
  const pid_t child = ::fork();
  if (child < 0) throw Error("cannot start a process");
  if (child == 0) {
    ::close(ends[0]);
    be_child(ends[1], work);
  }
  ::close(ends[1]);
  lock.unlock();
  ::setpgid(child, child);
  std::string text, thrown;
  bool hangs = false;
  for (;;) {
    pollfd ready{ends[0], POLLIN, 0};
    hangs = ::poll(&ready, 1, static_cast<int>(silence.count() * 1000)) == 0;
    char bytes[4096];
    const ssize_t got = hangs ? 0 : ::read(ends[0], bytes, sizeof bytes);
    if (got <= 0) break;
    text.append(bytes, static_cast<std::size_t>(got));
    for (std::size_t end; (end = text.find('\n')) != text.npos; text.erase(0, end + 1)) {
      const std::string line = text.substr(0, end);
      if (line.starts_with(threw)) {
        thrown = line;
      } else {
        on_line(line);
      }
    }
  }
  ::close(ends[0]);
  if (hangs) ::kill(-child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (hangs) return fmt::format("it hangs: {} s without a sign of life", silence.count());
  if (WIFSIGNALED(status)) return fmt::format("it crashed: {}", ::strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? "" : thrown.empty() ? "it ended early" : "it " + thrown;
}

}  // namespace tessera::internal::fuzz
