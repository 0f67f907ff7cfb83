// Launches on GPUs in a profile: by CUPTI, or by events around them if CUPTI cannot trace.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jit/cuda/cuda_context.hpp"
#include "jit/cuda/cupti.hpp"
#include "jit/profile/join.hpp"
#include "jit/profile/profile.hpp"

namespace tessera::internal {

class CudaBackend;
class CudaStream;

/// Times launches on one device by events before and after each. Launches that begin early (PDL) then no longer do, and
/// a graph is timed as a whole.
class EventTimer {
 public:
  explicit EventTimer(CudaBackend& device);
  /// The join gets earlier launches, if they are many.
  void begin(CudaStream& stream, std::uint64_t number, const std::string& name, profile::Join& join);
  void end(CudaStream& stream);
  /// Waits for the launches, and adds them to the join.
  void collect(profile::Join& join);

 private:
  using Event = cuda::Handle<cuda::CUevent>;
  struct Timed {
    std::uint64_t number;
    std::string name;
    std::uint64_t stream;
    Event begin, end;
  };
  Event record(CudaStream& stream);
  void read(profile::Join& join);
  double milliseconds(const Event& from, const Event& to) const;

  CudaBackend& device_;
  std::mutex mutex_;  // guards all below
  std::vector<Timed> timed_;
  std::vector<Event> unused_;
  std::optional<Event> last_;  // its time is known
  profile::Time last_time_ = 0;
};

/// The part of a profile that the devices of the process share.
class CudaProfile {
 public:
  static CudaProfile& process();
  /// Searches for CUPTI in `places`; not at all if there are none.
  explicit CudaProfile(std::vector<std::string> places) : places_(std::move(places)) {}

  /// To be called while the profiler is on. Opens CUPTI for the first device; a failure is a warning.
  void add(CudaBackend& device);
  void remove(CudaBackend& device);
  profile::Join& join() { return join_; }
  /// Null: events time launches.
  const cuda::Cupti* cupti() const { return cupti_ ? &*cupti_ : nullptr; }
  /// Waits for all devices, and gives what they did to the recorder.
  void collect(profile::Recorder& recorder);

 private:
  const std::vector<std::string> places_;
  profile::Join join_;
  std::mutex mutex_;  // guards all below
  bool tried_ = false;
  std::optional<cuda::Cupti> cupti_;
  std::set<CudaBackend*> devices_;
};

/// Work that a thread gives to a stream, in the profile: the host's call, and what the device will do. It does nothing
/// while the profiler is off.
class TimedCall {
 public:
  /// `plan` returns the kernels (profile::Plan); null: it is a copy. A stream that Stream::capture records keeps them
  /// for its graph.
  template <class MakePlan>
  TimedCall(CudaStream& stream, profile::Kind kind, const MakePlan& plan) : stream_(stream) {
    if (profile::active()) [[unlikely]]
      begin(kind, plan());
  }
  ~TimedCall() {
    if (span_) [[unlikely]]
      end();
  }
  /// In the profile; 0: it has none.
  std::uint64_t number() const { return span_ ? span_->event().number : 0; }
  TimedCall(const TimedCall&) = delete;
  TimedCall& operator=(const TimedCall&) = delete;

 private:
  void begin(profile::Kind kind, profile::Plan plan);
  void end();

  CudaStream& stream_;
  std::optional<profile::Span> span_;
  bool has_plan_ = false;
};

}  // namespace tessera::internal
