#include "common/interrupt.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "tessera/graph/error.hpp"

namespace tessera::internal {

namespace {

volatile std::sig_atomic_t interrupted = 0;
int event = -1;  // can be waited for together with a file, so that a signal just before the wait is not lost
struct sigaction before;

void hear(int) {
  const int error = errno;
  const std::uint64_t one = 1;
  interrupted = 1;
  [[maybe_unused]] const ssize_t written = ::write(event, &one, sizeof(one));
  errno = error;
}

void listen() {
  struct sigaction action = {};
  action.sa_handler = hear;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) throw Error("there is no file descriptor left to listen for Ctrl-C");
  interrupted = 0;
  ::sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler != SIG_IGN) listen();
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &before, nullptr);
  ::close(event);
}

bool Interrupt::heard() const { return interrupted != 0; }

void Interrupt::rearm() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(event, &count, sizeof(count));
  interrupted = 0;
  if (before.sa_handler != SIG_IGN) listen();
}

bool Interrupt::wait_for_input(int file) const {
  while (!heard()) {
    std::array<pollfd, 2> ready{{{file, POLLIN, 0}, {event, POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) > 0 && ready[0].revents) return !heard();
  }
  return false;
}

}  // namespace tessera::internal
