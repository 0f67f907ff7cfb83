// Where the time of a run went, stage by stage.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "common/program.hpp"

namespace tessera::internal {

/// Milliseconds and tokens of each stage. What kernels took to compile is in none of them but in a line of its own.
struct Timings {
  double load = 0, prompt = 0, evaluate = 0, sample = 0;
  double waited = 0;  ///< for what somebody types; no part of the total
  std::size_t prompt_tokens = 0, evaluated = 0, sampled = 0;
  Stopwatch total;

  /// Notes what loading took: all time up to now.
  void loaded();
  double total_milliseconds() const { return total.milliseconds() - waited; }
  /// A line for each stage.
  std::string text() const;
};

/// Sums up the time of the device. It is read when the work is done, so that no work waits for a clock.
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
  /// Adds all that was timed to the sums; waits for it.
  void read();

 private:
  static double compiling();  // milliseconds so far

  struct Span {
    double& sum;
    Event begin, end;
    double compiled;  // meanwhile, while the device mostly waited
  };
  Stream stream_;
  std::vector<Span> spans_;
};

}  // namespace tessera::internal
