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
  struct Block {
    std::uint32_t time = 0;  ///< its clock at the last cluster barrier
    Known known;             ///< what its threads knew about each other and its units
  };
  std::uint32_t first_block = 0;  ///< numbered as in events
  std::vector<Block> blocks;

  /// `fenced`: units see the access.
  bool knows(const Event& past, bool fenced) const {
    const std::uint32_t rank = past.block - first_block;
    if (rank >= blocks.size()) return false;
    const auto& [time, known] = blocks[rank];
    if (!fenced && !past.by_unit) return past.time < time;
    return past.time <= (fenced ? known.fenced : known.known)[past.thread];
  }
};

/// An access that is about to be made, by a thread or on its behalf. TMA also writes for threads of other CTAs.
struct Now {
  Event event;
  std::uint32_t block = 0;  ///< CTA of the thread; that of the event may be another one of the cluster
  std::uint16_t thread = 0;
  std::uint32_t barrier = 0;             ///< time of the CTA's last barrier
  std::uint32_t warp_barrier = 0;        ///< time of the warp's last barrier, its own or the CTA's
  std::uint32_t launch = 0;              ///< first CTA of the launch
  const Knowledge* knowledge = nullptr;  ///< of the thread, beyond these barriers; null: none
  const ClusterOrder* cluster = nullptr;
};

inline bool is_ordered(const Event& past, const Now& now) {
  const bool fenced = now.event.by_unit && past.write && !past.by_unit;  // a fence is necessary
  const auto is_part = [&](const Known& known) {
    return past.time <= (fenced ? known.fenced : known.known)[past.thread];
  };
  if (past.block != now.block) {
    if (past.block < now.launch || (now.cluster && now.cluster->knows(past, fenced))) return true;
    if (!now.knowledge) return false;
    const auto other = now.knowledge->of_others.find(past.block);
    return other != now.knowledge->of_others.end() && is_part(other->second);
  }
  const bool is_known = now.knowledge && is_part(*now.knowledge);
  if (past.by_unit || fenced) return is_known;
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
