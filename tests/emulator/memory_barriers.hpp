// mbarriers in shared memory (PTX ISA, "mbarrier"): phases, arrivals, and bytes of asynchronous copies.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/history.hpp"
#include "emulator/place.hpp"

namespace tessera::internal::emulator {

class Block;

inline constexpr int barrier_bytes = 8;  ///< PTX ISA, "Size and alignment of mbarrier object"

struct MemoryBarrier final : Place {
  int offset = 0;          ///< in shared memory
  int arrivals = 0;        ///< per phase
  int pending = 0;         ///< in this phase
  std::int64_t bytes = 0;  ///< still expected; negative: completed before they were expected
  std::uint32_t phase = 0;
  Event made{};                   ///< when and by which thread it was initialized
  std::optional<Event> fenced{};  ///< from here on TMA and other CTAs of the cluster see it
  Knowledge coming, over;         ///< what threads knew that arrived in this phase, and in the phases before
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
  /// A thread of another CTA of the cluster arrives.
  void arrive_from(Thread& self, const void* at, Code code);
  void wait(Thread& self, const void* at, std::uint32_t parity, Code code);

  /// The mbarrier at an address. Ends the thread's CTA, which may be another one of the cluster, if there is none.
  MemoryBarrier& find(Thread& self, const void* at, Code code);
  /// A unit has completed the copy of `bytes` that was started at `time`.
  void complete(MemoryBarrier& barrier, int bytes, int unit, std::uint32_t time);
  /// The CTA ends, with this knowledge. Reports an arrival by another CTA that may come later; returns false if so.
  bool end(const Now& now);

 private:
  /// The last arrival of a thread of another CTA.
  struct Arrival {
    Event event;
    Thread* thread;
    Code code;
    int offset;
  };

  std::string name_for(const Thread& self, const std::string& name) const;
  void check_pending(const Thread& self, const MemoryBarrier& barrier, Code code) const;
  void come(MemoryBarrier& barrier, const Knowledge& knowledge);
  void end_phase(MemoryBarrier& barrier);

  Block& block_;
  std::map<int, MemoryBarrier> barriers_;                      ///< by offset
  std::map<std::pair<std::int64_t, int>, Arrival> by_others_;  ///< by CTA and thread
};

}  // namespace tessera::internal::emulator
