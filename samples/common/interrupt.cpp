#include "common/interrupt.hpp"

#include <csignal>

namespace tessera {

namespace {

volatile std::sig_atomic_t interrupted = 0;
struct sigaction before;

// Without SA_RESTART, so that who waits for a line hears it, too.
void listen() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  interrupted = 0;
  ::sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler != SIG_IGN) listen();
}

Interrupt::~Interrupt() { ::sigaction(SIGINT, &before, nullptr); }

bool Interrupt::heard() const { return interrupted != 0; }

void Interrupt::rearm() {
  interrupted = 0;
  if (before.sa_handler != SIG_IGN) listen();
}

}  // namespace tessera
