#include "emulator/memory_barriers.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "emulator/block.hpp"
#include "emulator/checks.hpp"

namespace tessera::internal::emulator {
namespace {

/// A value stored in the mbarrier's memory, to detect that it is overwritten.
std::uint64_t mark(int offset) { return 0x6d62617272696572 ^ static_cast<std::uint64_t>(offset); }

/// PTX ISA, "Size and alignment of mbarrier object", "Tx-count".
constexpr int barrier_bytes = 8;
constexpr std::int64_t most_bytes = (1 << 20) - 1;

}  // namespace

std::string MemoryBarrier::name() const { return fmt::format("the mbarrier at byte {} of shared memory", offset); }

std::string MemoryBarrier::lacks() const {
  return fmt::format("lacks {} of {} arrivals and {} bytes", pending, arrivals, bytes);
}

std::string MemoryBarrier::story(const Thread& waits) const {
  const auto parity = *static_cast<const std::uint32_t*>(waits.meeting.operands);
  return fmt::format(" for parity {} of {}, whose phase {} {}", parity, name(), phase, lacks());
}

void MemoryBarriers::init(Thread& self, const void* at, int arrivals, Code code) {
  const int offset = block_.offset_in_shared(self, at, barrier_bytes, barrier_bytes, Use::write, code);
  MemoryBarrier& barrier = barriers_[offset];
  if (arrivals < 1)
    block_.refuse(self, code, fmt::format("initializes an mbarrier for {} arrivals at byte {}", arrivals, offset));
  if (!barrier.waiting.empty())
    block_.refuse(self, code, fmt::format("initializes {} while other threads wait there", barrier.name()));
  barrier = {};
  barrier.offset = offset;
  barrier.arrivals = barrier.pending = arrivals;
  barrier.made = block_.now(self).event;
  const std::uint64_t text = mark(offset);
  std::memcpy(block_.shared_memory() + offset, &text, sizeof text);
}

void MemoryBarriers::fence(const Thread& self) {
  for (auto& [offset, barrier] : barriers_) barrier.fenced |= barrier.made.thread == self.index;
}

MemoryBarrier& MemoryBarriers::find(Thread& self, const void* at, Code code) {
  const int offset = block_.offset_in_shared(self, at, barrier_bytes, barrier_bytes, Use::atomic, code);
  const auto found = barriers_.find(offset);
  const std::uint64_t text = mark(offset);
  if (found == barriers_.end())
    block_.refuse(self, code,
                  fmt::format("uses byte {} of shared memory as an mbarrier, which was not initialized", offset));
  if (std::memcmp(block_.shared_memory() + offset, &text, sizeof text) != 0)
    block_.refuse(self, code, "uses " + found->second.name() + ", which was overwritten");
  if (!is_ordered(found->second.made, block_.now(self))) {
    block_.report(
        Fault::Kind::race, self, code,
        fmt::format("thread {} uses {} at {}, which thread {} initialized with no barrier between them", self.index,
                    found->second.name(), block_.launch().lines[code], found->second.made.thread));
    block_.stop();
  }
  return found->second;
}

void MemoryBarriers::arrive(Thread& self, const void* at, int bytes, Code code) {
  MemoryBarrier& barrier = find(self, at, code);
  if (barrier.pending == 0)
    block_.refuse(
        self, code,
        fmt::format("arrives at {} once too often: phase {} {}", barrier.name(), barrier.phase, barrier.lacks()));
  barrier.bytes += bytes;
  if (bytes < 0 || barrier.bytes > most_bytes)
    block_.refuse(
        self, code,
        fmt::format("makes {} expect {} bytes, and the maximum is {}", barrier.name(), barrier.bytes, most_bytes));
  barrier.coming.join(block_.order().release(self.index));
  --barrier.pending;
  end_phase(barrier);
}

void MemoryBarriers::wait(Thread& self, const void* at, std::uint32_t parity, Code code) {
  MemoryBarrier& barrier = find(self, at, code);
  if (parity > 1) block_.refuse(self, code, fmt::format("waits for parity {} of {}", parity, barrier.name()));
  while ((barrier.phase & 1) == parity) {
    barrier.waiting.push_back(&self);
    block_.sleep(self, {.what = "barrier_wait", .code = code, .operands = &parity, .place = &barrier});
  }
  block_.order().acquire(self.index, barrier.over);
}

void MemoryBarriers::complete(MemoryBarrier& barrier, int bytes, int unit, std::uint32_t time) {
  barrier.coming.known.raise(static_cast<std::size_t>(unit), time);
  barrier.bytes -= bytes;
  end_phase(barrier);
}

void MemoryBarriers::end_phase(MemoryBarrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.arrivals;
  barrier.over.join(std::exchange(barrier.coming, {}));
  for (Thread* thread : std::exchange(barrier.waiting, {})) block_.wake(*thread);
}

}  // namespace tessera::internal::emulator
