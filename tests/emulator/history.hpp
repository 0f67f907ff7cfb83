// Accesses to memory: who, when and where, and which of them a barrier puts in order.
#pragma once
#include <cstdint>

namespace tessera::emulator {

/// An access to memory that has been.
struct Event {
  std::uint32_t block = 0;  ///< from 1, counted through all launches of a run; 0: there was none
  std::uint32_t time = 0;   ///< of the last barrier before it. The block's clock goes on with each barrier
  std::uint32_t code = 0;   ///< which access of the text, as an offset in the compiled kernels
  std::uint16_t thread = 0;
  bool atomic = false;
  bool in_flight = false;  ///< an asynchronous copy that no wait has covered yet

  int warp() const { return thread / 32; }
};

/// An access that is being made.
struct Now {
  Event event;                ///< its time is that of the warp's last barrier, be it the warp's own or the block's
  std::uint32_t barrier = 0;  ///< time of the block's last barrier
  std::uint32_t launch = 0;   ///< first block of the launch
};

inline bool is_ordered(const Event& past, const Now& now) {
  if (past.block != now.event.block) return past.block < now.launch;
  return past.thread == now.event.thread || past.time < now.barrier ||
         (past.warp() == now.event.warp() && past.time < now.event.time);
}

/// The accesses to one place, all reads or all writes. It keeps two: whoever is unordered with any of them is so with
/// one of these.
class History {
 public:
  bool empty() const { return first_.block == 0; }
  /// The last access; an older one if others race with it.
  Event& last() { return first_; }

  void add(const Now& now) {
    const Event& event = now.event;
    const bool two = second_.block != 0;
    if (first_.block < now.launch) return restart(event);
    if (two && second_.block != first_.block) return;  // no block is ordered with both
    if (event.block != first_.block) return void(second_ = event);
    if (first_.time < now.barrier) return restart(event);
    if (two && second_.warp() != first_.warp()) return;  // nor any warp
    if (event.warp() != first_.warp()) return void(second_ = event);
    if (first_.time < event.time) return restart(event);
    (event.thread == first_.thread ? first_ : second_) = event;
  }

  /// One that races with `now`, or null. Atomic accesses do not race with each other.
  const Event* unordered(const Now& now) const {
    for (const Event* past : {&first_, &second_}) {
      if (past->block != 0 && !is_ordered(*past, now) && !(past->atomic && now.event.atomic)) return past;
    }
    return nullptr;
  }

 private:
  void restart(const Event& event) { first_ = event, second_ = {}; }

  Event first_, second_;
};

}  // namespace tessera::emulator
