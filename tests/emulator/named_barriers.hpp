// The barriers of the hardware, by number (PTX ISA, "bar"): some threads wait there, others only come.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "emulator/knowledge.hpp"
#include "emulator/place.hpp"

namespace tessera::internal::emulator {

class Block;

struct NamedBarrier final : Place {
  int id = 0;
  int threads = 0;  ///< that it is for, as the first of them said
  int came = 0;
  Meeting first;       ///< of the thread that came first
  Knowledge coming{};  ///< what those know who came
  std::vector<Thread*> waiting;

  std::string story(const Thread& waits) const override;
};

class NamedBarriers {
 public:
  explicit NamedBarriers(Block& block);

  /// A thread comes to barrier `id`, which is for `threads` threads, and may wait for the others.
  void come(Thread& self, int id, int threads, bool waits, Code code);

 private:
  Block& block_;
  std::array<NamedBarrier, 16> barriers_;
};

}  // namespace tessera::internal::emulator
