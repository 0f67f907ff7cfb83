// The order of accesses in a CTA: its clock, and what threads know of each other through barriers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/history.hpp"
#include "emulator/knowledge.hpp"

namespace tessera::internal::emulator {

class Order {
 public:
  explicit Order(int threads);

  /// An access by a thread, or by a unit on its behalf, as far as the CTA's order goes.
  Now now(int thread) const;
  Now now(int thread, int unit);

  /// All threads, or those of a warp, have met at a barrier: each knows all accesses before it.
  void barrier();
  /// Time of the last barrier of all threads; accesses before it have an earlier time.
  std::uint32_t last_barrier() const { return barrier_; }
  void warp_barrier(int warp);

  /// A thread's knowledge that it passes to threads that wait for it: all that it knows, and its own accesses so far.
  const Knowledge& release(int thread);
  void acquire(int thread, const Knowledge& knowledge);
  /// The same for threads of other CTAs; `block` is the number of the thread's own CTA.
  Knowledge publish(int thread, std::uint32_t block);
  /// The knowledge of all threads together, beyond that from barriers of the CTA.
  Knowledge all() const;
  /// From here on units see what the thread knows.
  void fence(int thread);

  /// A unit that works asynchronously for threads; a thread knows its work after calling finish().
  int new_unit(std::string name);
  /// Work given to units so far has the returned time; later work has a later time.
  std::uint32_t tick() { return clock_++; }
  std::uint32_t clock() const { return clock_; }
  /// The thread knows that a unit's work up to a time has completed.
  void finish(int thread, int unit, std::uint32_t time) { of(thread).known.raise(index(unit), time); }

  /// "thread 3", or the name of a unit.
  std::string name(int who) const;

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  std::uint32_t time(int thread) const { return std::max(times_[index(thread)], warp_barriers_[index(thread / 32)]); }
  /// Maintained from the first use on.
  Knowledge& of(int thread);

  std::uint32_t clock_ = 1, barrier_ = 0;
  std::vector<std::uint32_t> warp_barriers_;  ///< time of each warp's last barrier, its own or the CTA's
  std::vector<std::uint32_t> times_;          ///< time of each thread's last release
  std::vector<Knowledge> knowledge_;
  std::vector<std::string> units_;
};

}  // namespace tessera::internal::emulator
