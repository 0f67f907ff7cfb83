#include "cpu/parallel.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#ifdef TESSERA_HAS_TBB
#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

namespace tessera::internal::cpu {
namespace {
std::atomic<int> requested{0};
}  // namespace

void set_threads(int threads) { requested = threads; }
int threads() {
#ifdef TESSERA_HAS_TBB
  const int all = tbb::info::default_concurrency();  // for more, oneTBB prints a warning and ignores them
#else
  const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
#endif
  return requested > 0 ? std::min(requested.load(), all) : all;
}

const char* missing_instructions() {
#ifdef __AVX512F__
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl")) return "AVX-512";
#endif
#ifdef __AVX2__
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return "AVX2 and FMA";
#endif
  return "";
}

namespace {

// Threads that sleep between loops and take ranges from a shared counter. They are used without oneTBB, and in a forked
// child, which lacks the threads that its oneTBB counts on. A pool is never destroyed, because code that runs at the
// end of the process may still launch.
class Pool {
 public:
  explicit Pool(int threads) {
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // no more threads are available: the existing ones do the work
    }
  }

  /// A loop that begins while another one runs, even in a body of that one, runs on the calling thread alone.
  void run(std::int64_t count, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
    if (in_use_.exchange(true)) return count > 0 ? body(context, 0, count) : void();
    {
      std::lock_guard lock(mutex_);
      body_ = body, context_ = context, count_ = count, error_ = nullptr;
      chunk_ = std::max<std::int64_t>(1, count / (4 * (static_cast<std::int64_t>(workers_.size()) + 1)));
      next_ = 0;
      busy_ = static_cast<int>(workers_.size());
      ++loop_;
    }
    wake_.notify_all();
    take();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
    const std::exception_ptr error = std::exchange(error_, nullptr);
    lock.unlock();
    in_use_ = false;
    if (error) std::rethrow_exception(error);
  }

  /// Ends the threads, whose code may be unloaded. Later loops run on the calling thread.
  void stop() {
    if (in_use_.exchange(true)) return;  // used by the code that ends the process
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    in_use_ = false;
  }

 private:
  void take() {
    for (;;) {
      const std::int64_t begin = next_.fetch_add(chunk_);
      if (begin >= count_) return;
      try {
        body_(context_, begin, std::min(begin + chunk_, count_));
      } catch (...) {
        std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        next_ = count_;
      }
    }
  }
  void work() {
    std::uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || loop_ != seen; });
        if (stop_) return;
        seen = loop_;
      }
      take();
      std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::atomic<bool> in_use_ = false;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  void (*body_)(void*, std::int64_t, std::int64_t) = nullptr;
  void* context_ = nullptr;
  std::int64_t count_ = 0, chunk_ = 1;
  std::atomic<std::int64_t> next_{0};
  std::uint64_t loop_ = 0;
  int busy_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
};

// State of this process. A forked child has its parent's memory and none of its threads.
std::mutex making;
std::atomic<Pool*> pool{nullptr};
#ifdef TESSERA_HAS_TBB
std::atomic<tbb::task_arena*> arena{nullptr};
std::atomic<bool> has_lost_threads{false};
#endif

void after_fork_in_child() {
  pool = nullptr;
#ifdef TESSERA_HAS_TBB
  has_lost_threads = arena.load() != nullptr;
#endif
  making.unlock();
}

void watch_forks() {  // once, whichever is created first
  static const int watched = pthread_atfork([] { making.lock(); }, [] { making.unlock(); }, &after_fork_in_child);
  (void)watched;
}

template <class T>
T& made(std::atomic<T*>& place) {
  if (T* const found = place.load()) return *found;
  const std::lock_guard lock(making);
  watch_forks();
  if (!place.load()) place = new T(threads());
  return *place.load();
}

// When the library is unloaded, the code of its threads goes with it.
struct StopsThreads {
  ~StopsThreads() {
    if (Pool* const last = pool.load()) last->stop();
  }
} const stops_threads;

std::atomic<LoopWatch> loop_watch{nullptr};

void run_loop(std::int64_t count, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
#ifdef TESSERA_HAS_TBB
  if (!has_lost_threads)
    return made(arena).execute([&] {
      tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, count), [&](const tbb::blocked_range<std::int64_t>& range) {
        body(context, range.begin(), range.end());
      });
    });
#endif
  made(pool).run(count, body, context);
}

/// A loop that is watched.
struct Watched {
  void (*body)(void*, std::int64_t, std::int64_t);
  void* context;
  std::mutex mutex = {};  // guards the next member
  std::vector<LoopPart> parts = {};

  static void range(void* loop, std::int64_t begin, std::int64_t end) {
    using Clock = std::chrono::steady_clock;
    Watched& watched = *static_cast<Watched*>(loop);
    const auto since = Clock::now();
    watched.body(watched.context, begin, end);
    const auto until = Clock::now();
    const auto thread = static_cast<std::uint64_t>(::gettid());
    const std::lock_guard lock(watched.mutex);
    const auto known = std::ranges::find(watched.parts, thread, &LoopPart::thread);
    if (known != watched.parts.end())
      known->end = until;
    else
      watched.parts.push_back({thread, since, until});
  }
};

}  // namespace

void watch_loops(LoopWatch watch) { loop_watch = watch; }

void parallel_for(std::int64_t count, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
  const LoopWatch watch = loop_watch.load(std::memory_order_relaxed);
  if (!watch) [[likely]]
    return run_loop(count, body, context);
  Watched loop{body, context};
  run_loop(count, &Watched::range, &loop);
  watch(loop.parts);
}

}  // namespace tessera::internal::cpu
