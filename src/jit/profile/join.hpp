// Brings together what the host gave to a device and what the device did, which is known later.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "jit/profile/recorder.hpp"

namespace tessera::internal::profile {

/// A kernel that a call on the host will run.
struct Planned {
  SubjectRef subject;
  std::string entry;  ///< its name on the device
  Details details = {};
};
/// All kernels of a call, in order: one, or those of a recorded graph.
using Plan = std::shared_ptr<const std::vector<Planned>>;

/// Something that a device did.
struct Activity {
  Kind kind = Kind::kernel;
  std::string name;  ///< on the device
  Time begin = 0, end = 0;
  int device = 0;
  std::uint64_t stream = 0;
  std::uint32_t correlation = 0;  ///< the same for all that one call on the host caused
  std::uint64_t node = 0;         ///< of a graph: later ones have larger numbers; 0: of none
  Details details = {};           ///< as far as the device knows them
};

class Join {
 public:
  /// The call with this number of the recorder is about to run the plan.
  void submit(std::uint64_t number, Plan plan);
  /// The device knows the call by `correlation`.
  void correlate(std::uint32_t correlation, std::uint64_t number);
  /// May be called from any thread, before or after correlate().
  void add(Activity activity);
  /// How many activities wait for settle()?
  std::size_t waiting() const;
  /// Adds an event for each activity. Activities of unknown calls, such as those of other libraries, have only their
  /// own names.
  void settle(Recorder& recorder);

 private:
  struct Call {
    Plan plan;
    std::size_t next = 0;  ///< of its kernels
  };
  // Calls that a device never reports are forgotten.
  static constexpr std::size_t most_calls = std::size_t{1} << 18;

  mutable std::mutex mutex_;  // guards all below
  std::map<std::uint64_t, Call> calls_;
  std::unordered_map<std::uint32_t, std::uint64_t> numbers_;
  std::vector<Activity> activities_;
};

}  // namespace tessera::internal::profile
