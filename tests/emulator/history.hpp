// Accesses to memory: who, when and where, and which of them are in order.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/knowledge.hpp"

namespace tessera::internal::emulator {

/// An access to memory that has been.
struct Event {
  std::uint32_t block = 0;   ///< from 1, counted through all launches of a run; 0: there was none
  std::uint32_t time = 0;    ///< of its thread's last barrier. The block's clock goes on with each barrier
  std::uint32_t code = 0;    ///< which access of the text, as an offset in the compiled kernels
  std::uint16_t thread = 0;  ///< or unit, whose numbers go on from those of threads
  bool atomic : 1 = false;
  bool for_block : 1 = false;  ///< atomic for threads of the block alone
  bool in_flight : 1 = false;  ///< an asynchronous copy that no wait has covered yet
  bool write : 1 = false;
  bool by_unit : 1 = false;  ///< the copy engine or a matrix unit, at some moment until the wait that covers it

  int warp() const { return thread / 32; }
};

/// What barriers of a cluster say of its blocks' accesses.
struct ClusterOrder {
  std::uint32_t first_block = 0;     ///< as events count them
  std::vector<std::uint32_t> times;  ///< by block: of its clock at the last barrier

  bool knows(const Event& past) const {
    const std::uint32_t rank = past.block - first_block;
    return rank < times.size() && !past.by_unit && past.time < times[rank];
  }
};

/// An access that is being made.
struct Now {
  Event event;
  std::uint16_t thread = 0;              ///< for whom, where it is a unit's
  std::uint32_t barrier = 0;             ///< time of the block's last barrier
  std::uint32_t warp_barrier = 0;        ///< of the warp's last barrier, be it its own or the block's
  std::uint32_t launch = 0;              ///< first block of the launch
  const Knowledge* knowledge = nullptr;  ///< of the thread, beyond what those barriers say; null: none
  const ClusterOrder* cluster = nullptr;
};

inline bool is_ordered(const Event& past, const Now& now) {
  if (past.block != now.event.block) {
    if (past.block < now.launch || (now.cluster && now.cluster->knows(past))) return true;
    if (!now.knowledge || past.by_unit || now.event.by_unit) return false;
    const auto other = now.knowledge->of_others.find(past.block);
    return other != now.knowledge->of_others.end() && past.time <= other->second[past.thread];
  }
  const bool is_known = now.knowledge && past.time <= now.knowledge->known[past.thread];
  if (past.by_unit) return is_known;
  if (now.event.by_unit && past.write) return now.knowledge && past.time <= now.knowledge->fenced[past.thread];
  return past.thread == now.thread || past.time < now.barrier ||
         (past.warp() == now.thread / 32 && past.time < now.warp_barrier) || is_known;
}

/// The accesses to one place, all reads or all writes. It keeps two. Of barriers of blocks and warps, whoever is
/// unordered with any access is so with one of these; of others, mostly.
class History {
 public:
  bool empty() const { return first_.block == 0; }
  /// The last access; an older one if others race with it.
  Event& last() { return first_; }

  void add(const Now& now) {
    const Event& event = now.event;
    if (second_.block != 0 && is_over(second_, now)) second_ = {};
    if (first_.block == 0 || is_over(first_, now)) first_ = std::exchange(second_, {});
    if (first_.block == 0) return void(first_ = event);
    // Whoever is in order with one of two, far apart, is rarely so with the other.
    if (second_.block == 0 || distance(event, first_) > distance(second_, first_)) second_ = event;
  }

  /// One that races with `now`, or null. Atomic accesses do not race with each other, if each is so for the other.
  const Event* unordered(const Now& now) const {
    for (const Event* past : {&first_, &second_}) {
      if (past->block != 0 && !is_ordered(*past, now) && !are_atomic(*past, now.event)) return past;
    }
    return nullptr;
  }

 private:
  static bool are_atomic(const Event& a, const Event& b) {
    return a.atomic && b.atomic && (a.block == b.block || (!a.for_block && !b.for_block));
  }
  /// Whoever races with `past` does so with `now`. An atomic access stands for no other.
  static bool is_over(const Event& past, const Now& now) {
    if (now.event.atomic && !past.atomic) return past.block < now.launch;
    return is_ordered(past, now) || (past.block == now.event.block && past.thread == now.event.thread);
  }
  static int distance(const Event& a, const Event& b) { return a.block != b.block ? 2 : a.warp() != b.warp() ? 1 : 0; }

  Event first_, second_;
};

}  // namespace tessera::internal::emulator
