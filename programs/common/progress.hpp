// How far something is, on a line of the terminal that comes and goes.
#pragma once
#include <functional>
#include <string>
#include <thread>

namespace tessera::internal {

/// Part of a whole, from 0 to 1, or below 0 where that is not known; what is done. An empty `what`: nothing to show
/// now.
struct Progress {
  std::string what;
  double part = -1;
};

/// Of kernels that are being compiled.
Progress compile_progress();

/// Shows on stderr what `progress`, called from another thread, gives, as long as this is there: from the second second
/// on, so that what is fast shows nothing, and only if stderr is a terminal that can take a line back. In colour,
/// unless NO_COLOR is set (no-color.org).
class ProgressLine {
 public:
  explicit ProgressLine(std::function<Progress()> progress);

 private:
  std::jthread thread_;
};

}  // namespace tessera::internal
