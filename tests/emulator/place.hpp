// A place in the text where a thread meets others, as it comes to it.
#pragma once
#include <string>

#include "emulator/lines.hpp"

namespace tessera::internal::emulator {

struct Thread;  // block.hpp

/// What a thread may wait for that is there for longer than the wait.
struct Place {
  virtual ~Place() = default;
  /// What is missing, as a thread that waits there sees it.
  virtual std::string story(const Thread& waits) const = 0;
};

struct Meeting {
  const char* what = nullptr;  ///< "barrier", "shuffle_xor"; null: the thread waits nowhere
  Code code = nullptr;
  void* operands = nullptr;      ///< what the thread brings and takes; lives until the meeting is over
  const Place* place = nullptr;  ///< null: its warp, warp group or block
};

}  // namespace tessera::internal::emulator
