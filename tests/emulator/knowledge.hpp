// What somebody knows of the accesses of others: of each, those up to a time.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tessera::internal::emulator {

/// A time for each thread of a block and each unit that works for them. 0: nothing is known of it.
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

/// Two kinds of it: the units see of what threads wrote only that which a fence has passed on to them. And what is
/// known of other blocks' threads, by block.
struct Knowledge {
  Times known, fenced;
  std::map<std::uint32_t, Times> of_others;
  void join(const Knowledge& other) {
    known.join(other.known), fenced.join(other.fenced);
    for (const auto& [block, times] : other.of_others) of_others[block].join(times);
  }
};

}  // namespace tessera::internal::emulator
