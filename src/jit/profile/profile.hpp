// The hooks of the profiler. While it is off, each costs a load and a comparison.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "jit/profile/event.hpp"

namespace tessera::internal::profile {

class Nvtx;
class Recorder;
class StampedKernels;

/// Where events go.
struct Profile {
  Recorder* recorder = nullptr;             ///< null: only the names go to an attached profiler
  const Nvtx* nvtx = nullptr;               ///< null: there is none
  const StampedKernels* stamped = nullptr;  ///< null: no kernel is looked into
};
/// Null: the profiler is off. The profile is never destroyed while threads may record.
[[gnu::visibility("default")]] extern std::atomic<const Profile*> current;
inline const Profile* active() { return current.load(std::memory_order_acquire); }

/// A kernel's subject, made when it is first needed.
class LazySubject {
 public:
  const SubjectRef& of(const Graph& graph) const {
    std::call_once(once_, [&] { subject_ = Subject::of(graph); });
    return subject_;
  }

 private:
  mutable std::once_flag once_;
  mutable SubjectRef subject_;
};

/// An event of this thread that lasts as long as the object. Spans of a thread nest.
class Span {
 public:
  Span() = default;
  /// `subject` returns a SubjectRef and is called only if the profiler is on.
  template <class Subject>
  Span(Kind kind, const Subject& subject) {
    if (const Profile* const profile = active()) [[unlikely]]
      begin(*profile, kind, subject());
  }
  ~Span() {
    if (profile_) [[unlikely]]
      end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  /// The details to be filled in; null: the profiler is off.
  Details* details() { return profile_ ? &event_->details : nullptr; }
  /// The number of its launch; 0: it has none.
  void set_number(std::uint64_t number) {
    if (profile_) event_->number = number;
  }
  /// The innermost one of this thread; null: there is none.
  static Span* innermost();
  const Event& event() const { return *event_; }

 private:
  friend void note_code(const char* how, int registers);
  [[gnu::visibility("default")]] void begin(const Profile& profile, Kind kind, SubjectRef subject);
  [[gnu::visibility("default")]] void end();

  const Profile* profile_ = nullptr;
  std::unique_ptr<Event> event_;
  Span* outer_ = nullptr;
};

/// Fills in grid and work of a launch.
void describe(Details& details, const Subject& subject, std::span<const Argument> arguments,
              std::span<const std::int64_t> grid);
/// Says in one word how the code of the innermost compilation of this thread was made.
void note_code(const char* how, int registers);

/// Makes threads' parts of loops on the CPU events, or no longer.
void watch_threads(bool watch);

}  // namespace tessera::internal::profile
