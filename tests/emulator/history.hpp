// Accesses to memory: which thread, when and where; and which accesses are ordered.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/knowledge.hpp"

namespace tessera::internal::emulator {

/// A past access to memory.
struct Event {
  std::uint32_t block = 0;   ///< from 1, counted over all launches of a run; 0: no access
  std::uint32_t time = 0;    ///< of its thread's last barrier; the CTA's clock advances at each barrier
  std::uint32_t code = 0;    ///< the access in the text, as an offset in the compiled kernels
  std::uint16_t thread = 0;  ///< or unit; units are numbered after the threads
  bool atomic : 1 = false;
  bool for_block : 1 = false;  ///< atomic with respect to the CTA only
  bool in_flight : 1 = false;  ///< by an asynchronous copy that no wait has covered yet
  bool write : 1 = false;
  bool by_unit : 1 = false;  ///< by TMA or wgmma, at an arbitrary time before the wait that covers it

  int warp() const { return thread / 32; }
};

/// The order that cluster barriers establish between accesses of its CTAs.
struct ClusterOrder {
  std::uint32_t first_block = 0;     ///< numbered as in events
  std::vector<std::uint32_t> times;  ///< for each CTA, its clock at the last cluster barrier

  bool knows(const Event& past) const {
    const std::uint32_t rank = past.block - first_block;
    return rank < times.size() && !past.by_unit && past.time < times[rank];
  }
};

/// An access that is about to be made.
struct Now {
  Event event;
  std::uint16_t thread = 0;              ///< on whose behalf, if a unit makes the access
  std::uint32_t barrier = 0;             ///< time of the CTA's last barrier
  std::uint32_t warp_barrier = 0;        ///< time of the warp's last barrier, its own or the CTA's
  std::uint32_t launch = 0;              ///< first CTA of the launch
  const Knowledge* knowledge = nullptr;  ///< of the thread, beyond these barriers; null: none
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

/// The accesses to one location, either all reads or all writes. Only two are kept. If CTAs and warps synchronize by
/// barriers alone, an access that is unordered with any past access is unordered with one of these two; otherwise it
/// nearly always is.
class History {
 public:
  bool empty() const { return first_.block == 0; }
  /// The last access, or an older one if others race with it.
  Event& last() { return first_; }

  void add(const Now& now) {
    const Event& event = now.event;
    if (second_.block != 0 && is_over(second_, now)) second_ = {};
    if (first_.block == 0 || is_over(first_, now)) first_ = std::exchange(second_, {});
    if (first_.block == 0) return void(first_ = event);
    // An access that is ordered after one of two accesses far apart is rarely ordered after the other.
    if (second_.block == 0 || distance(event, first_) > distance(second_, first_)) second_ = event;
  }

  /// Returns an access that races with `now`, or null. Atomic accesses do not race with each other if each is atomic
  /// with respect to the other.
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
  /// Returns true if any access that races with `past` also races with `now`, so that `past` can be dropped. An atomic
  /// access does not replace a plain one.
  static bool is_over(const Event& past, const Now& now) {
    if (now.event.atomic && !past.atomic) return past.block < now.launch;
    return is_ordered(past, now) || (past.block == now.event.block && past.thread == now.event.thread);
  }
  static int distance(const Event& a, const Event& b) { return a.block != b.block ? 2 : a.warp() != b.warp() ? 1 : 0; }

  Event first_, second_;
};

}  // namespace tessera::internal::emulator
