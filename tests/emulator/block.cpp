#include "emulator/block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/context/preallocated.hpp>
#include <cstring>
#include <utility>

namespace tessera::emulator {
namespace {

thread_local Thread* current = nullptr;

/// Fibers do not own their stacks.
struct Borrowed {
  void deallocate(boost::context::stack_context&) {}
};

constexpr std::size_t shared_alignment = 128;

char* aligned(char* pointer, std::size_t alignment) {
  return pointer + (-reinterpret_cast<std::uintptr_t>(pointer) & (alignment - 1));
}

}  // namespace

Thread& current_thread() { return *current; }

Block::Block(const Launch& launch, std::int64_t index, const Stacks& stacks, int first_stack)
    : launch_(launch),
      index_(index),
      memory_(new char[static_cast<std::size_t>(launch.shared_bytes) + shared_alignment]),
      shared_(aligned(memory_.get(), shared_alignment)),
      shadow_(shared_, launch.checks ? static_cast<std::size_t>(launch.shared_bytes) : 0,
              {{.name = "shared memory", .base = shared_}}),
      warps_(static_cast<std::size_t>(launch.threads / warp_size)) {
  std::memset(shared_, poison, static_cast<std::size_t>(launch.shared_bytes));
  threads_.reserve(static_cast<std::size_t>(launch.threads));
  for (int i = 0; i < launch.threads; ++i) {
    Thread& thread = threads_.emplace_back(Thread{.block = *this, .index = i});
    const auto life = [this, &thread](boost::context::fiber&& scheduler) {
      scheduler_ = std::move(scheduler);
      launch_.entry(launch_.cells.data());
      thread.ended = true;
      ++ended_;
      return std::move(scheduler_);
    };
    const boost::context::stack_context stack = stacks[first_stack + i];
    thread.fiber = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                                         Borrowed{}, life);
  }
}

Block::~Block() = default;  // unwinds the threads that have not ended

bool Block::step() {
  std::uint32_t ready = 0;
  for (std::size_t i = 0; i < warps_.size(); ++i) ready |= (warps_[i].ready ? 1u : 0u) << i;
  if (!ready) {
    if (!stopped_ && ended_ < launch_.threads) report_stuck();
    return false;
  }
  const int index = pick(ready);
  Warp& warp = warps_[static_cast<std::size_t>(index)];
  while (warp.ready && !stopped_) {
    const int lane = pick(warp.ready);
    warp.ready &= ~(1u << lane);
    run(threads_[static_cast<std::size_t>(index * warp_size + lane)]);
  }
  return !stopped_;
}

int Block::pick(std::uint32_t set) {
  const int start = launch_.random.below(warp_size);
  return (std::countr_zero(std::rotr(set, start)) + start) % warp_size;
}

void Block::run(Thread& thread) {
  current = &thread;
  thread.fiber = std::move(thread.fiber).resume();
  current = nullptr;
}

void Block::suspend() { scheduler_ = std::move(scheduler_).resume(); }

void Block::stop() {
  stopped_ = true;
  for (;;) suspend();
}

void Block::meet_block(Thread& self, const Meeting& meeting) {
  if (at_barrier_ > 0) compare(self, meeting, *first_at_barrier_, Fault::Kind::divergent_barrier);
  if (++at_barrier_ < launch_.threads) {
    if (at_barrier_ == 1) first_at_barrier_ = &self;
    self.meeting = meeting;
    suspend();
    return;
  }
  at_barrier_ = 0;
  barrier_ = ++clock_;
  for (Thread& thread : threads_) thread.meeting = {};
  for (Warp& warp : warps_) warp = {.barrier = barrier_};
  warps_[static_cast<std::size_t>(self.warp())].ready &= ~(1u << self.lane());
}

void Block::meet_warp(Thread& self, const Meeting& meeting, void (*exchange)(const Operands&)) {
  Warp& warp = warps_[static_cast<std::size_t>(self.warp())];
  const std::span lanes(&threads_[static_cast<std::size_t>(self.warp() * warp_size)], warp_size);
  if (warp.waiting) {
    compare(self, meeting, lanes[static_cast<std::size_t>(std::countr_zero(warp.waiting))], Fault::Kind::missing_lane);
  }
  self.meeting = meeting;
  warp.waiting |= 1u << self.lane();
  if (~warp.waiting) return suspend();
  Operands operands;
  for (std::size_t i = 0; i < warp_size; ++i) operands[i] = std::exchange(lanes[i].meeting, {}).operands;
  exchange(operands);
  warp.waiting = 0;
  warp.ready = ~(1u << self.lane());
}

void Block::order_warp(const Thread& self) { warps_[static_cast<std::size_t>(self.warp())].barrier = ++clock_; }

Now Block::now(const Thread& thread) const {
  return {.event = {.block = launch_.first_block + static_cast<std::uint32_t>(index_),
                    .time = warps_[static_cast<std::size_t>(thread.warp())].barrier,
                    .thread = static_cast<std::uint16_t>(thread.index)},
          .barrier = barrier_};
}

/// The other thread waits already: it must be for the same.
void Block::compare(const Thread& self, const Meeting& meeting, const Thread& other, Fault::Kind kind) {
  const Lines& lines = launch_.lines;
  if (meeting.code == other.meeting.code) return;
  const bool is_copy = lines[meeting.code] == lines[other.meeting.code];  // made by the compiler, of one call
  if (is_copy && std::strcmp(meeting.what, other.meeting.what) == 0) return;
  report(kind, self, meeting.code,
         fmt::format("thread {} comes to {} at {} while thread {} waits in {} at {}", self.index, meeting.what,
                     lines[meeting.code], other.index, other.meeting.what, lines[other.meeting.code]));
  stop();
}

/// No thread can run, and not all have ended.
void Block::report_stuck() {
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    const std::uint32_t waiting = warps_[w].waiting;
    if (!waiting) continue;
    const Thread* const lanes = &threads_[w * warp_size];
    return report_missing(lanes[std::countr_zero(waiting)], lanes[std::countr_one(waiting)], Fault::Kind::missing_lane);
  }
  const auto missing = std::ranges::find_if(threads_, [](const Thread& thread) { return thread.ended; });
  report_missing(*first_at_barrier_, *missing, Fault::Kind::divergent_barrier);
}

void Block::report_missing(const Thread& waits, const Thread& missing, Fault::Kind kind) {
  const Lines& lines = launch_.lines;
  const std::string where =
      missing.ended ? "has ended" : fmt::format("waits in {} at {}", missing.meeting.what, lines[missing.meeting.code]);
  report(kind, waits, waits.meeting.code,
         fmt::format("thread {} waits in {} at {} for thread {}, which {}", waits.index, waits.meeting.what,
                     lines[waits.meeting.code], missing.index, where));
}

void Block::report(Fault::Kind kind, const Thread& thread, Code code, const std::string& text) {
  launch_.report.faults.push_back({.kind = kind,
                                   .kernel = launch_.kernel,
                                   .block = index_,
                                   .thread = thread.index,
                                   .line = launch_.lines[code],
                                   .text = fmt::format("kernel {}, block {}: {}", launch_.kernel, index_, text)});
}

}  // namespace tessera::emulator
