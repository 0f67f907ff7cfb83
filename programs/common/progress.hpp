// A progress line on the terminal, which disappears when it is done.
#pragma once
#include <functional>
#include <string>
#include <thread>

namespace tessera::internal {

/// The fraction that is done, from 0 to 1, or below 0 if unknown, and a description. An empty `what`: nothing to show
/// now.
struct Progress {
  std::string what;
  double part = -1;
};

/// The progress of kernel compilation.
Progress compile_progress();

/// While this exists, shows on stderr the result of `progress`, which is called from another thread. It begins after
/// one second, so that short work shows nothing, and needs a terminal that can overwrite a line. It is colored, unless
/// NO_COLOR is set (no-color.org).
class ProgressLine {
 public:
  explicit ProgressLine(std::function<Progress()> progress);

 private:
  std::jthread thread_;
};

}  // namespace tessera::internal
