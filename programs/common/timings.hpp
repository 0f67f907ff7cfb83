// The time of a run, by stages.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "common/program.hpp"

namespace tessera::internal {

/// Milliseconds and tokens of each stage. The time of waiting for kernels to be compiled is not part of any stage;
/// compilation, which may overlap with stages, has its own line.
struct Timings {
  double load = 0, prompt = 0, evaluate = 0, sample = 0;
  double draft = 0;       ///< of a draft model
  double waited = 0;  ///< for user input; not part of the total
  std::size_t prompt_tokens = 0, evaluated = 0, sampled = 0;
  std::size_t drafted = 0, accepted = 0;  ///< tokens of drafts, and those that the model accepted
  Stopwatch total;

  /// Sets the time for loading to all time up to now.
  void loaded();
  double total_milliseconds() const { return total.milliseconds() - waited; }
  /// One line per stage.
  std::string text() const;
};

/// Accumulates device time. The events are read when the work is done, so that no work waits for a clock.
class DeviceClock {
 public:
  explicit DeviceClock(Stream stream) : stream_(std::move(stream)) {}

  template <class Work>
  void time(double& sum, Work&& work) {
    const double compiled = compiling();
    const Event begin = stream_.record();
    work();
    spans_.push_back({sum, begin, stream_.record(), compiling() - compiled});
  }
  /// Waits for everything that was timed and adds it to the sums.
  void read();

 private:
  static double compiling();  // total milliseconds so far

  struct Span {
    double& sum;
    Event begin, end;
    double compiled;  // milliseconds of compilation in between, while the device mostly waited
  };
  Stream stream_;
  std::vector<Span> spans_;
};

}  // namespace tessera::internal
