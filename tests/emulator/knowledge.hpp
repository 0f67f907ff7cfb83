// Knowledge of other threads' accesses: for each thread, all accesses up to a time (a vector clock).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tessera::internal::emulator {

/// A time for each thread of a CTA and each unit. 0: no access of it is known.
class Times {
 public:
  std::uint32_t operator[](std::size_t who) const { return who < times_.size() ? times_[who] : 0; }
  void raise(std::size_t who, std::uint32_t time) {
    if (who >= times_.size()) times_.resize(who + 1);
    times_[who] = std::max(times_[who], time);
  }
  void join(const Times& other) {
    if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
    for (std::size_t i = 0; i < other.times_.size(); ++i) times_[i] = std::max(times_[i], other.times_[i]);
  }

 private:
  std::vector<std::uint32_t> times_;
};

/// Knowledge about the threads and units of one CTA. `fenced` is the part of `known` that units see as well, as a
/// fence passed it on.
struct Known {
  Times known, fenced;
  void join(const Known& other) { known.join(other.known), fenced.join(other.fenced); }
};

/// Knowledge about a thread's own CTA, and about other CTAs, by their numbers.
struct Knowledge : Known {
  std::map<std::uint32_t, Known> of_others;
  void join(const Knowledge& other) {
    Known::join(other);
    for (const auto& [block, known] : other.of_others) of_others[block].join(known);
  }
  /// The knowledge that a thread published, as a thread of CTA `block` sees it: about that CTA, it is about its own.
  static Knowledge seen_from(std::uint32_t block, Knowledge published) {
    if (const auto own = published.of_others.extract(block)) published.Known::join(own.mapped());
    return published;
  }
};

}  // namespace tessera::internal::emulator
