#include "jit/compile/compile_times.hpp"

#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "jit/compile/compiler.hpp"
#include "tessera/graph/error.hpp"

namespace tessera::internal {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<std::int64_t> nanoseconds_waited = 0;
std::atomic<int> kernels_awaited = 0;

thread_local int compiling_depth = 0;  // how many Compiling the thread has

double in_milliseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) * 1e-6; }

/// The compilations of all threads. Those at the same time count once in the time.
class Compilations {
 public:
  struct Now {
    Clock::duration time;
    int running;
    bool has_ended;  // has any?
  };

  static Compilations& instance() {
    static Compilations& all = *new Compilations;  // never destroyed, like the compiler
    return all;
  }

  void begin() {
    std::call_once(opened_, [this] {
      try {
        Nvrtc::instance();
      } catch (const Error&) {  // whoever needs it reports that
      }
      watch_end();
    });
    const std::lock_guard lock(mutex_);
    if (const pid_t process = ::getpid(); process_ != process) process_ = process, running_ = 0;
    if (ending_ && std::this_thread::get_id() != ends_) throw Error("the process is ending; no kernel is compiled");
    if (running_++ == 0) since_ = Clock::now();
  }

  void end() {
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) before_ += Clock::now() - since_;
    has_ended_ = true;
    changed_.notify_all();
  }

  Now now() {
    const std::lock_guard lock(mutex_);
    return {before_ + (running_ > 0 ? Clock::now() - since_ : Clock::duration{}), running_, has_ended_};
  }

  /// exit() calls handlers in the reverse order of their registration. NVRTC registers destructors when it is opened
  /// and while it compiles, most of them the first time; the wait must come before them. So it is registered again
  /// after each of NVRTC's first compilations. (During the very first one, exit() may still come too early.)
  void watch_end() {
    constexpr int most = 32;
    const std::lock_guard lock(mutex_);
    if (watched_ < most && !ending_) ++watched_, std::atexit([] { instance().wait_for_all(); });
  }

 private:
  void wait_for_all() {
    std::unique_lock lock(mutex_);
    if (process_ != ::getpid()) return;
    ending_ = true, ends_ = std::this_thread::get_id();
    changed_.wait(lock, [this] { return running_ == 0; });
  }

  std::once_flag opened_;
  std::mutex mutex_;   // guards all below
  pid_t process_ = 0;  // that they belong to: a forked child does not have the threads
  std::condition_variable changed_;
  Clock::duration before_{};
  Clock::time_point since_;
  int running_ = 0, watched_ = 0;
  bool has_ended_ = false, ending_ = false;
  std::thread::id ends_;  // the thread that ends the process
};

}  // namespace

Compiling::Compiling() {
  if (compiling_depth == 0) Compilations::instance().begin();
  ++compiling_depth;
}
Compiling::~Compiling() {
  if (--compiling_depth == 0) Compilations::instance().end();
}

void wait_at_exit() { Compilations::instance().watch_end(); }

CompileTimes compile_times() {
  const Compilations::Now now = Compilations::instance().now();
  CompileTimes times{.waited = in_milliseconds(std::chrono::nanoseconds(nanoseconds_waited)),
                     .running = now.running,
                     .awaited = kernels_awaited};
  if (!now.has_ended) return times;  // the cache may not exist yet: creating it would look for its folder
  const CompileCache::Counters counters = Compiler::instance().counters();
  times.compiled = counters.compiled, times.cached = counters.disk_hits;
  times.milliseconds = in_milliseconds(now.time);
  return times;
}

WaitForCode::~WaitForCode() { nanoseconds_waited += std::chrono::nanoseconds(Clock::now() - start_).count(); }

AwaitedKernels::AwaitedKernels(int kernels) : left_(kernels) { kernels_awaited += kernels; }
AwaitedKernels::~AwaitedKernels() { kernels_awaited -= left_; }
void AwaitedKernels::made() { --left_, --kernels_awaited; }

}  // namespace tessera::internal
