// The compilations of the process: their number and time; and its end, which waits for them.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace tessera::internal {

/// The work of compile_kernel() and recompile_kernel() in this process so far, over all threads.
struct CompileTimes {
  std::uint64_t compiled = 0;  ///< kernels compiled by NVRTC, one per variant
  std::uint64_t cached = 0;    ///< kernels found on disk
  double milliseconds = 0;     ///< in which at least one thread was on the way from a graph to its code
  double waited = 0;           ///< milliseconds in which launches and warm-ups waited for code, except stoppable ones
  int running = 0;             ///< in progress now
  int awaited = 0;             ///< kernels that warm-ups have still to make
};
CompileTimes compile_times();

/// Adds the time for which it exists to CompileTimes::waited.
class WaitForCode {
 public:
  WaitForCode() = default;
  ~WaitForCode();
  WaitForCode(const WaitForCode&) = delete;
  WaitForCode& operator=(const WaitForCode&) = delete;

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// While it exists, CompileTimes::awaited has these kernels, except those that were made.
class AwaitedKernels {
 public:
  explicit AwaitedKernels(int kernels);
  ~AwaitedKernels();
  AwaitedKernels(const AwaitedKernels&) = delete;
  AwaitedKernels& operator=(const AwaitedKernels&) = delete;
  void made();  ///< one of them; from any thread

 private:
  std::atomic<int> left_;
};

/// Exists while a thread is on the way from a graph to its code; may be nested. When the process ends, exit() waits for
/// those of other threads, since it destroys what the compiler uses; and they begin no more: the constructor throws
/// Error.
class Compiling {
 public:
  Compiling();
  ~Compiling();
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;
};

/// To be called after a compilation by NVRTC, which registers destructors that must not run before that wait.
void wait_at_exit();

}  // namespace tessera::internal
