#include "cpu/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
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
  const int all = tbb::info::default_concurrency();  // more, oneTBB refuses with a warning
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

#ifdef TESSERA_HAS_TBB

void parallel_for(std::int64_t count, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
  static tbb::task_arena arena(threads());
  const auto run = [&] {
    tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, count), [&](const tbb::blocked_range<std::int64_t>& range) {
      body(context, range.begin(), range.end());
    });
  };
  arena.execute(run);
}

#else

namespace {

// Where oneTBB is absent: threads that sleep between loops and take ranges from a shared counter.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(std::int64_t count, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
    std::lock_guard one_loop_at_a_time(loops_);
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
    if (error_) std::rethrow_exception(error_);
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

  std::mutex loops_, mutex_;
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

}  // namespace

void parallel_for(std::int64_t count, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
  static Pool pool(threads());
  pool.run(count, body, context);
}

#endif

}  // namespace tessera::internal::cpu
