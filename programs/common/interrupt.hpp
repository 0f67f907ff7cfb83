// Ctrl-C: the program handles the first; the second ends it.
#pragma once

namespace tessera::internal {

/// While this exists, the first SIGINT is recorded and the second kills the process, as by default. A process that was
/// started with SIGINT ignored keeps ignoring it. Only one may exist at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Was there a SIGINT since the last rearm()?
  bool heard() const;
  /// Clears it: the next SIGINT counts as the first.
  void rearm();
  /// Waits until a file has input or ends (true), or until a SIGINT (false).
  bool wait_for_input(int file) const;
};

}  // namespace tessera::internal
