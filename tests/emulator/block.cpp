#include "emulator/block.hpp"

#include "emulator/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/context/preallocated.hpp>
#include <cstring>
#include <utility>

namespace tessera::internal::emulator {
namespace {

thread_local Thread* current = nullptr;

/// Fibers do not own their stacks.
struct Borrowed {
  void deallocate(boost::context::stack_context&) {}
};

constexpr std::size_t shared_alignment = 1024;

char* aligned(char* pointer, std::size_t alignment) {
  return pointer + (-reinterpret_cast<std::uintptr_t>(pointer) & (alignment - 1));
}

}  // namespace

Thread& current_thread() { return *current; }

Block::Block(Cluster& cluster, const Launch& launch, std::int64_t index, const Stacks& stacks, int first_stack)
    : cluster_(cluster),
      launch_(launch),
      index_(index),
      memory_(new char[static_cast<std::size_t>(launch.shared_bytes) + shared_alignment]),
      shared_(aligned(memory_.get(), shared_alignment)),
      shadow_(shared_, launch.checks ? static_cast<std::size_t>(launch.shared_bytes) : 0,
              {{.name = "shared memory", .base = shared_}}),
      warps_(static_cast<std::size_t>(launch.threads / warp_size)),
      groups_(static_cast<std::size_t>(launch.threads / group_size)),
      order_(launch.threads),
      registers_(*this, launch.threads, launch.blocks_of_multiprocessor) {
  std::memset(shared_, poison, static_cast<std::size_t>(launch.shared_bytes));
  threads_.reserve(static_cast<std::size_t>(launch.threads));
  for (int i = 0; i < launch.threads; ++i) {
    Thread& thread = threads_.emplace_back(Thread{.block = *this, .index = i});
    const auto life = [this, &thread](boost::context::fiber&& scheduler) {
      scheduler_ = std::move(scheduler);
      try {
        launch_.entry(launch_.cells.data());
        thread.ended = true;
        if (++ended_ == launch_.threads) end();
        cluster_.left();
      } catch (const boost::context::detail::forced_unwind&) {
        throw;
      } catch (...) {  // of the emulator itself, called by the kernel
        failure_ = std::current_exception();
      }
      return std::move(scheduler_);
    };
    const boost::context::stack_context stack = stacks[first_stack + i];
    thread.fiber = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack),
                                         Borrowed{}, life);
  }
}

Block::~Block() = default;  // unwinds threads that have not ended

void Block::end() {
  if (cluster_.blocks().size() == 1) return;
  const Knowledge all = order_.all();
  const Now now{
      .event = {}, .block = number(), .barrier = order_.last_barrier(), .knowledge = &all, .cluster = cluster_.order()};
  stopped_ = !copy_engine_.end(now) || !memory_barriers_.end(now);
}

bool Block::step() {
  if (stopped_) return false;
  std::uint32_t ready = 0;
  for (std::size_t i = 0; i < warps_.size(); ++i) ready |= (warps_[i].ready ? 1u : 0u) << i;
  const int copies = copy_engine_.under_way(), work = copies + matrix_units_.under_way();
  if (work > 0 && (!ready || launch_.random.below(4) == 0)) {
    const int which = launch_.random.below(work);
    which < copies ? copy_engine_.make(which) : matrix_units_.make(which - copies);
    return true;
  }
  if (!ready) return false;
  const int index = pick(ready);
  Warp& warp = warps_[static_cast<std::size_t>(index)];
  paused_ = false;
  while (warp.ready && !stopped_ && !paused_) {
    const int lane = pick(warp.ready);
    warp.ready &= ~(1u << lane);
    run(threads_[static_cast<std::size_t>(index * warp_size + lane)]);
  }
  return !stopped_;
}

bool Block::waits_for_others() const {
  return std::ranges::any_of(threads_, [&](const Thread& thread) {
    return thread.meeting.place == &launch_.flags || thread.meeting.place == &launch_.grid_barrier;
  });
}

int Block::pick(std::uint32_t set) {
  const int start = launch_.random.below(warp_size);
  return (std::countr_zero(std::rotr(set, start)) + start) % warp_size;
}

void Block::run(Thread& thread) {
  current = &thread;
  thread.fiber = std::move(thread.fiber).resume();
  current = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
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
  order_.barrier();
  for (Thread& thread : threads_) thread.meeting = {};
  for (Warp& warp : warps_) warp = {};
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

void Block::meet_group(Thread& self, const Meeting& meeting, void (*exchange)(std::span<Thread> threads)) {
  const auto index = static_cast<std::size_t>(self.index / group_size);
  if (index >= groups_.size())
    refuse(self, meeting.code,
           fmt::format("uses {} in a warp group of fewer than {} threads", meeting.what, group_size));
  Group& group = groups_[index];
  if (group.waiting > 0) compare(self, meeting, *group.first, Fault::Kind::missing_lane);
  if (group.waiting == 0) group.first = &self;
  self.meeting = meeting;
  if (++group.waiting < group_size) return suspend();
  const std::span threads(&threads_[index * group_size], group_size);
  exchange(threads);
  group = {};
  for (Thread& thread : threads) {
    thread.meeting = {};
    if (&thread != &self) wake(thread);
  }
}

void Block::pause(Thread& self) {
  if (launch_.random.below(4) != 0) return;
  paused_ = true;
  wake(self);
  suspend();
}

void Block::sleep(Thread& self, const Meeting& meeting) {
  self.meeting = meeting;
  suspend();
  self.meeting = {};
}

void Block::wake(const Thread& thread) { warps_[static_cast<std::size_t>(thread.warp())].ready |= 1u << thread.lane(); }

Now Block::now(const Thread& thread, int unit) {
  Block& by = thread.block;
  Now now = unit == no_unit ? by.order_.now(thread.index) : by.order_.now(thread.index, unit);
  now.block = now.event.block = by.number();
  if (unit != no_unit) now.event.block = number(), now.event.time = order_.clock();
  now.cluster = cluster_.order();
  return now;
}

void Block::check(Thread& self, const void* address, std::size_t bytes, std::size_t alignment, Use use, Code code,
                  Space space, int unit) {
  if (launch_.checks) launch_.checks->access(self, address, bytes, alignment, use, code, space, unit);
}

int Block::offset_in_shared(Thread& self, const void* address, int bytes, int alignment, Use use, Code code, int unit) {
  const bool own = &self.block == this;
  check(self, address, static_cast<std::size_t>(bytes), static_cast<std::size_t>(alignment), use, code,
        own ? Space::shared : Space::cluster, unit);
  const auto offset = static_cast<const char*>(address) - shared_;
  const bool inside = offset >= 0 && offset + bytes <= launch_.shared_bytes;
  if (inside && offset % alignment == 0) return static_cast<int>(offset);
  self.block.report(
      inside ? Fault::Kind::misaligned : Fault::Kind::out_of_bounds, self, code,
      fmt::format("thread {} uses {} bytes at offset {} of {} in shared memory{}, with alignment {}, at {}", self.index,
                  bytes, offset, launch_.shared_bytes, own ? "" : fmt::format(" of block {}", index_), alignment,
                  launch_.lines[code]));
  self.block.stop();
}

/// `other` is waiting already; both must have come to the same operation.
void Block::compare(const Thread& self, const Meeting& meeting, const Thread& other, Fault::Kind kind) {
  const Lines& lines = launch_.lines;
  if (meeting.code == other.meeting.code) return;
  const bool is_copy = lines[meeting.code] == lines[other.meeting.code];  // one call, duplicated by the compiler
  if (is_copy && std::strcmp(meeting.what, other.meeting.what) == 0) return;
  report(kind, self, meeting.code,
         fmt::format("thread {} arrives at {} at {} while thread {} waits in {} at {}", self.index, meeting.what,
                     lines[meeting.code], other.index, other.meeting.what, lines[other.meeting.code]));
  stop();
}

/// No thread can run, and not all have ended.
void Block::report_stuck(const std::string& others) {
  if (std::ranges::any_of(threads_, [](const Thread& thread) { return thread.meeting.place != nullptr; }))
    return report_deadlock(others);
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    const std::uint32_t waiting = warps_[w].waiting;
    if (!waiting) continue;
    const Thread* const lanes = &threads_[w * warp_size];
    return report_missing(lanes[std::countr_zero(waiting)], lanes[std::countr_one(waiting)], Fault::Kind::missing_lane);
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].waiting == 0) continue;
    const std::span group(&threads_[g * group_size], group_size);
    const auto missing =
        std::ranges::find_if(group, [&](const Thread& t) { return t.meeting.code != groups_[g].first->meeting.code; });
    return report_missing(*groups_[g].first, *missing, Fault::Kind::missing_lane);
  }
  const auto missing = std::ranges::find_if(threads_, [](const Thread& thread) { return thread.ended; });
  report_missing(*first_at_barrier_, *missing, Fault::Kind::divergent_barrier);
}

std::string Block::waits() const {
  std::vector<std::pair<std::string, std::vector<const Thread*>>> all;
  for (const Thread& thread : threads_) {
    const Meeting& meeting = thread.meeting;
    if (thread.ended || !meeting.what) continue;
    std::string where = fmt::format("in {} at {}", meeting.what, launch_.lines[meeting.code]);
    if (meeting.place) where += meeting.place->story(thread);
    const auto known = std::ranges::find(all, where, [](const auto& one) { return one.first; });
    if (known == all.end())
      all.push_back({where, {&thread}});
    else
      known->second.push_back(&thread);
  }
  std::string text;
  for (const auto& [where, threads] : all)
    text += fmt::format("{}thread {}{} {}", text.empty() ? "" : "; ", threads[0]->index,
                        threads.size() == 1 ? " waits" : fmt::format(" and {} more wait", threads.size() - 1), where);
  return text;
}

void Block::report_deadlock(const std::string& others) {
  const auto first = std::ranges::find_if(threads_, [](const Thread& thread) { return thread.meeting.place; });
  report(Fault::Kind::deadlock, *first, first->meeting.code,
         fmt::format("no thread can make progress; {}{}", waits(), others));
}

void Block::refuse(const Thread& thread, Code code, const std::string& text) {
  report(Fault::Kind::misuse, thread, code, fmt::format("thread {} {} at {}", thread.index, text, launch_.lines[code]));
  stop();
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

}  // namespace tessera::internal::emulator
