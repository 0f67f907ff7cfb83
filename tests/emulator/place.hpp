// A point in the text at which a thread synchronizes with others.
#pragma once
#include <string>

#include "emulator/lines.hpp"

namespace tessera::internal::emulator {

struct Thread;  // block.hpp

/// An object that threads wait for and that outlives the wait.
struct Place {
  virtual ~Place() = default;
  /// Describes what a thread that waits here is waiting for.
  virtual std::string story(const Thread& waits) const = 0;
};

struct Meeting {
  const char* what = nullptr;  ///< "barrier", "shuffle_xor"; null: the thread does not wait
  Code code = nullptr;
  void* operands = nullptr;      ///< of the thread, in and out; valid until the meeting is over
  const Place* place = nullptr;  ///< null: its warp, warp group or CTA
};

}  // namespace tessera::internal::emulator
