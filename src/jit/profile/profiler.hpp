// The profiler of the process: TESSERA_PROFILE.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "jit/options/options.hpp"

namespace tessera::internal::profile {

class Recorder;

/// Begins a profile, if TESSERA_PROFILE asks for one or a profiler is attached; does nothing if it has begun. Throws
/// Error if the file cannot be written.
void start();
/// The same as TESSERA_PROFILE=`value`, whatever the environment says: for programs. To be called before a device is
/// opened. Throws Error, which names `source`, for a value that the variable does not take.
[[gnu::visibility("default")]] void start(const std::string& value, const std::string& source);

/// The device that works on the host's threads is called this.
void name_host(const std::string& name);
/// `collect` is called before the profile is written. It adds what a device has measured.
void collect_with(std::function<void(Recorder&)> collect);
/// Registers finish() for the end of the process once more, ahead of the handlers that a library has registered by now.
void finish_before_handlers();
/// Writes the profile, and ends it. A failure is a warning.
void finish() noexcept;

/// Records into a recorder of a test instead, while it exists.
class Recording {
 public:
  explicit Recording(Recorder& recorder, const class Nvtx* nvtx = nullptr,
                     const class StampedKernels* stamped = nullptr);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  const struct Profile* before_;
  std::unique_ptr<struct Profile> profile_;
};

}  // namespace tessera::internal::profile
