// The order of a block's accesses: its clock, and what barriers tell its threads of each other.
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

  /// An access of a thread, as far as the block's order goes; or of a unit that the thread gives work.
  Now now(int thread) const;
  Now now(int thread, int unit);

  /// All threads, or those of a warp, have met: what they did before is over for all of them.
  void barrier();
  /// The time of the last one of all threads: what they did before it is of an earlier one.
  std::uint32_t last_barrier() const { return barrier_; }
  void warp_barrier(int warp);

  /// What a thread lets those know who wait for it: all that it knows, and its own accesses up to here.
  const Knowledge& release(int thread);
  void acquire(int thread, const Knowledge& knowledge);
  /// The same for threads of other blocks, to which the thread's own is `block`.
  Knowledge publish(int thread, std::uint32_t block);
  /// What the thread knows is seen by the units from here on.
  void fence(int thread);

  /// Somebody who works for threads, and whose work is over for a thread when it says so.
  int new_unit(std::string name);
  /// What the units have been given up to here has this time, and what they are given from here on a later one.
  std::uint32_t tick() { return clock_++; }
  /// A unit's work up to a time is over for the thread.
  void finish(int thread, int unit, std::uint32_t time) { of(thread).known.raise(index(unit), time); }

  /// "thread 3", or a unit's name.
  std::string name(int who) const;

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  std::uint32_t time(int thread) const { return std::max(times_[index(thread)], warp_barriers_[index(thread / 32)]); }
  /// Kept from the first time that somebody asks.
  Knowledge& of(int thread);

  std::uint32_t clock_ = 1, barrier_ = 0;
  std::vector<std::uint32_t> warp_barriers_;  ///< time of each warp's last barrier, its own or the block's
  std::vector<std::uint32_t> times_;          ///< of each thread's last release
  std::vector<Knowledge> knowledge_;
  std::vector<std::string> units_;
};

}  // namespace tessera::internal::emulator
