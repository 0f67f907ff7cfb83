// Ctrl-C: the first is heard by the program, the second ends it.
#pragma once

namespace tessera::internal {

/// While this is there, the first SIGINT is noted and the next kills the process, as if nobody listened. A process that
/// was started with SIGINT ignored goes on ignoring it. There may be one at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Was there one since the last rearm()?
  bool heard() const;
  /// Forgets it: the next SIGINT is a first one.
  void rearm();
  /// Waits until a file has something to read, or ends, or there is a SIGINT: then false.
  bool wait_for_input(int file) const;
};

}  // namespace tessera::internal
