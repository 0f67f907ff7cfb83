// Keeps the latest events of a profile, and sums over all of them. Any thread may add.
#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "jit/profile/event.hpp"
#include "jit/profile/inside.hpp"

namespace tessera::internal::profile {

/// All events of one kind and subject on one device.
struct Total {
  Kind kind{};
  SubjectRef subject;
  int device = on_host;
  std::int64_t count = 0;
  Time time = 0;
  Details details = {};  ///< of the latest; `work` and `count` are sums, -1 if one is unknown
};

/// The contents of a recorder.
struct Trace {
  Time begin = 0, end = 0;  ///< of the recording
  std::vector<Event> events;
  std::uint64_t dropped = 0;  ///< earlier events, which are in `totals` alone
  std::vector<Total> totals;
  std::map<int, DeviceLimits> devices;
  std::map<std::string, std::string> notes;
  std::vector<StampedLaunch> stamped;
};

class Recorder {
 public:
  struct Limits {
    std::size_t events = std::size_t{1} << 18;
    double seconds = 0;  ///< the last ones, whose events are kept; 0: those of all
  };
  explicit Recorder(const Limits& limits);

  std::uint64_t next_number() { return numbers_.fetch_add(1, std::memory_order_relaxed) + 1; }
  void add(Event event);
  void add(StampedLaunch launch);
  void set_device(int device, DeviceLimits limits);
  /// A word about the whole profile.
  void note(const std::string& about, std::string text);

  Trace trace() const;

 private:
  using Key = std::tuple<int, Kind, std::string, std::string, unsigned>;
  void sum(const Event& event);
  /// Earlier events are dropped.
  Time oldest() const;

  const Limits limits_;
  const Time begin_ = now();
  std::atomic<std::uint64_t> numbers_{0};
  mutable std::mutex mutex_;  // guards all below
  std::deque<Event> events_;
  std::uint64_t dropped_ = 0;
  Time latest_ = 0;
  std::map<Key, Total> totals_;
  std::map<int, DeviceLimits> devices_;
  std::map<std::string, std::string> notes_;
  std::vector<StampedLaunch> stamped_;
};

}  // namespace tessera::internal::profile
