// Named barriers (PTX ISA, "bar"): some threads wait there, others only arrive.
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
  int threads = 0;  ///< expected, as given by the first arrival
  int came = 0;
  Meeting first;       ///< of the first thread that arrived
  Knowledge coming{};  ///< what the arrived threads know
  std::vector<Thread*> waiting;

  std::string story(const Thread& waits) const override;
};

class NamedBarriers {
 public:
  explicit NamedBarriers(Block& block);

  /// A thread arrives at barrier `id` for `threads` threads, and waits for the others if `waits`.
  void come(Thread& self, int id, int threads, bool waits, Code code);

 private:
  Block& block_;
  std::array<NamedBarrier, 16> barriers_;
};

}  // namespace tessera::internal::emulator
