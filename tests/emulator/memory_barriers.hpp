// mbarriers in shared memory (PTX ISA, "mbarrier"): phases, arrivals, and bytes of asynchronous copies.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/history.hpp"
#include "emulator/place.hpp"

namespace tessera::internal::emulator {

class Block;

struct MemoryBarrier final : Place {
  int offset = 0;          ///< in shared memory
  int arrivals = 0;        ///< per phase
  int pending = 0;         ///< in this phase
  std::int64_t bytes = 0;  ///< still expected; negative: completed before they were expected
  std::uint32_t phase = 0;
  Event made{};            ///< when and by which thread it was initialized
  bool fenced = false;     ///< TMA sees it
  Knowledge coming, over;  ///< what threads knew that arrived in this phase, and in the phases before
  std::vector<Thread*> waiting;

  std::string name() const;
  std::string lacks() const;
  std::string story(const Thread& waits) const override;
};

class MemoryBarriers {
 public:
  explicit MemoryBarriers(Block& block) : block_(block) {}

  void init(Thread& self, const void* at, int arrivals, Code code);
  /// Makes mbarriers that the thread initialized visible to TMA.
  void fence(const Thread& self);
  /// Arrives, and makes the phase wait for `bytes` more.
  void arrive(Thread& self, const void* at, int bytes, Code code);
  void wait(Thread& self, const void* at, std::uint32_t parity, Code code);

  /// The mbarrier at an address. Ends the CTA if there is none.
  MemoryBarrier& find(Thread& self, const void* at, Code code);
  /// A unit has completed the copy of `bytes` that was started at `time`.
  void complete(MemoryBarrier& barrier, int bytes, int unit, std::uint32_t time);

 private:
  void end_phase(MemoryBarrier& barrier);

  Block& block_;
  std::map<int, MemoryBarrier> barriers_;  ///< by offset
};

}  // namespace tessera::internal::emulator
