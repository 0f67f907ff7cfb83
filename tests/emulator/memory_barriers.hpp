// Barriers in shared memory (PTX ISA, "mbarrier"): phases, arrivals, and bytes of asynchronous copies.
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
  int arrivals = 0;        ///< that end a phase
  int pending = 0;         ///< of this phase
  std::int64_t bytes = 0;  ///< that are still to come; below 0: came before they were expected
  std::uint32_t phase = 0;
  Event made{};            ///< when, and by which thread
  bool fenced = false;     ///< the copy engine knows of it
  Knowledge coming, over;  ///< what those know who came to this phase, or to those that are over
  std::vector<Thread*> waiting;

  std::string name() const;
  std::string lacks() const;
  std::string story(const Thread& waits) const override;
};

class MemoryBarriers {
 public:
  explicit MemoryBarriers(Block& block) : block_(block) {}

  void init(Thread& self, const void* at, int arrivals, Code code);
  /// Those that the thread made are seen by the copy engine.
  void fence(const Thread& self);
  /// Arrives, and has the phase wait for so many bytes more.
  void arrive(Thread& self, const void* at, int bytes, Code code);
  void wait(Thread& self, const void* at, std::uint32_t parity, Code code);

  /// The barrier at an address. Ends the block where there is none.
  MemoryBarrier& find(Thread& self, const void* at, Code code);
  /// A unit has brought the bytes that it was given at `time`.
  void complete(MemoryBarrier& barrier, int bytes, int unit, std::uint32_t time);

 private:
  void end_phase(MemoryBarrier& barrier);

  Block& block_;
  std::map<int, MemoryBarrier> barriers_;  ///< by offset
};

}  // namespace tessera::internal::emulator
