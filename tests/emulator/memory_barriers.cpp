#include "emulator/memory_barriers.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "emulator/block.hpp"
#include "emulator/checks.hpp"
#include "emulator/cluster.hpp"

namespace tessera::internal::emulator {
namespace {

/// A value stored in the mbarrier's memory, to detect that it is overwritten.
std::uint64_t mark(int offset) { return 0x6d62617272696572 ^ static_cast<std::uint64_t>(offset); }

/// PTX ISA, "Tx-count".
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
  for (auto& [offset, barrier] : barriers_)
    if (barrier.made.thread == self.index && !barrier.fenced) barrier.fenced = block_.now(self).event;
}

std::string MemoryBarriers::name_for(const Thread& self, const std::string& name) const {
  return &self.block == &block_ ? name : fmt::format("{} of block {}", name, block_.index());
}

MemoryBarrier& MemoryBarriers::find(Thread& self, const void* at, Code code) {
  const int offset = block_.offset_in_shared(self, at, barrier_bytes, barrier_bytes, Use::atomic, code);
  const auto found = barriers_.find(offset);
  const std::uint64_t text = mark(offset);
  if (found == barriers_.end())
    self.block.refuse(self, code,
                      fmt::format("uses {} as an mbarrier, which was not initialized",
                                  name_for(self, fmt::format("byte {} of shared memory", offset))));
  MemoryBarrier& barrier = found->second;
  const auto name = [&] { return name_for(self, barrier.name()); };
  if (std::memcmp(block_.shared_memory() + offset, &text, sizeof text) != 0)
    self.block.refuse(self, code, "uses " + name() + ", which was overwritten");
  const Now now = block_.now(self);
  const auto check_order = [&](const Event& event, const char* what) {
    if (is_ordered(event, now)) return;
    self.block.report(Fault::Kind::race, self, code,
                      fmt::format("thread {} uses {} at {}, which thread {} {} with no barrier between them",
                                  self.index, name(), block_.launch().lines[code], event.thread, what));
    self.block.stop();
  };
  check_order(barrier.made, "initialized");
  if (&self.block != &block_) {
    if (!barrier.fenced) {
      self.block.report(Fault::Kind::missing_fence, self, code,
                        fmt::format("thread {} uses {} at {}, with no barrier_init_fence since it was initialized",
                                    self.index, name(), block_.launch().lines[code]));
      self.block.stop();
    }
    check_order(*barrier.fenced, "fenced");
  }
  return barrier;
}

void MemoryBarriers::arrive(Thread& self, const void* at, int bytes, Code code) {
  MemoryBarrier& barrier = find(self, at, code);
  check_pending(self, barrier, code);
  barrier.bytes += bytes;
  if (bytes < 0 || barrier.bytes > most_bytes)
    block_.refuse(
        self, code,
        fmt::format("makes {} expect {} bytes, and the maximum is {}", barrier.name(), barrier.bytes, most_bytes));
  come(barrier, block_.order().release(self.index));
}

void MemoryBarriers::arrive_from(Thread& self, const void* at, Code code) {
  MemoryBarrier& barrier = find(self, at, code);
  check_pending(self, barrier, code);
  by_others_[{self.block.index(), self.index}] = {
      .event = block_.now(self).event, .thread = &self, .code = code, .offset = barrier.offset};
  come(barrier, Knowledge::seen_from(block_.number(), self.block.order().publish(self.index, self.block.number())));
}

void MemoryBarriers::check_pending(const Thread& self, const MemoryBarrier& barrier, Code code) const {
  if (barrier.pending == 0)
    self.block.refuse(self, code,
                      fmt::format("arrives at {} once too often: phase {} {}", name_for(self, barrier.name()),
                                  barrier.phase, barrier.lacks()));
}

void MemoryBarriers::come(MemoryBarrier& barrier, const Knowledge& knowledge) {
  barrier.coming.join(knowledge);
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

bool MemoryBarriers::end(const Now& now) {
  for (const auto& [from, arrival] : by_others_) {
    if (is_ordered(arrival.event, now)) continue;
    const Thread* const thread = arrival.thread;
    thread->block.report(Fault::Kind::misuse, *thread, arrival.code,
                         fmt::format("thread {} arrives at the mbarrier at byte {} of shared memory of block {} at {}, "
                                     "and block {} may end before that: it does not wait for the arrival",
                                     thread->index, arrival.offset, block_.index(), block_.launch().lines[arrival.code],
                                     block_.index()));
    return false;
  }
  return true;
}

void MemoryBarriers::end_phase(MemoryBarrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.arrivals;
  barrier.over.join(std::exchange(barrier.coming, {}));
  for (Thread* thread : std::exchange(barrier.waiting, {})) block_.wake(*thread);
}

}  // namespace tessera::internal::emulator
