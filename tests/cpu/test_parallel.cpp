// Loops over the CTAs of a grid: by oneTBB if available, and, in a program of their own, by the replacement pool.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cpu/parallel.hpp"
#include "support/catch.hpp"

namespace test_parallel {

using namespace tessera::internal;

namespace {
template <class Body>
void parallel_for(std::int64_t count, Body body) {
  cpu::parallel_for(
      count, [](void* context, std::int64_t begin, std::int64_t end) { (*static_cast<Body*>(context))(begin, end); },
      &body);
}

std::int64_t sum_to(std::int64_t count) {
  std::atomic<std::int64_t> sum = 0;
  parallel_for(count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sum += i;
  });
  return sum;
}

// Made before the first loop, so destroyed after everything that the loop made.
struct AtTheEnd {
  ~AtTheEnd() {
    if (sum_to(1000) != 499500) std::_Exit(3);
  }
} const at_the_end;
}  // namespace

TEST_CASE("a parallel loop visits each of its indices once", "[cpu]") {
  for (std::int64_t count : {0, 1, 2, 7, 64, 1000, 100'003}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
    std::atomic<bool> ranges_hold = true;
    parallel_for(count, [&](std::int64_t begin, std::int64_t end) {
      if (begin < 0 || begin >= end || end > count) return void(ranges_hold = false);
      for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    CHECK(ranges_hold);
    CHECK(std::count(visits.begin(), visits.end(), 1) == count);
  }
}

TEST_CASE("as many threads as requested, up to those available", "[cpu]") {
  cpu::set_threads(0);
  const int all = cpu::threads();
  CHECK(all >= 1);
  for (const int asked : {1, all, all + 1, 4096}) {
    cpu::set_threads(asked);
    CHECK(cpu::threads() == std::min(asked, all));
  }
  cpu::set_threads(0);
}

TEST_CASE("several threads share a parallel loop", "[cpu]") {
  const std::size_t wanted = cpu::threads() > 1 ? 2 : 1;
  std::mutex mutex;
  std::set<std::thread::id> seen;
  // The first thread waits for a second one.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  parallel_for(1000, [&](std::int64_t, std::int64_t) {
    for (;;) {
      {
        std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
        if (seen.size() >= wanted || std::chrono::steady_clock::now() > deadline) return;
      }
      std::this_thread::yield();
    }
  });
  CHECK(seen.size() >= wanted);
}

TEST_CASE("an exception in a parallel loop is rethrown, and the next loop runs", "[cpu]") {
  for (int round = 0; round < 20; ++round) {
    CHECK_THROWS_WITH(parallel_for(
                          1000,
                          [](std::int64_t begin, std::int64_t end) {
      if (begin <= 500 && 500 < end) throw std::runtime_error("at 500");
                          }),
                      "at 500");
    CHECK_THROWS_AS(parallel_for(1000, [](std::int64_t, std::int64_t) { throw 1; }), int);
    CHECK(sum_to(1000) == 499'500);
  }
}

TEST_CASE("parallel loops of several threads do not mix", "[cpu]") {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t count = 100 * t; count < 100 * t + 200; ++count)
        wrong += sum_to(count) != count * (count - 1) / 2;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a forked child runs its loops on threads of its own", "[cpu]") {
  CHECK(sum_to(1000) == 499500);
  const auto status_of = [](const auto& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      ::_exit(work());
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  };
  for (int round = 0; round < 3; ++round) CHECK(status_of([] { return sum_to(1000) == 499500 ? 0 : 1; }) == 0);
  CHECK(status_of([&] {  // and in a child of it
          return sum_to(1000) == 499500 ? status_of([] { return sum_to(1000) == 499500 ? 0 : 1; }) : 1;
        }) == 0);
  // While other threads are in a loop.
  std::atomic<bool> stop = false;
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i)
    busy.emplace_back([&] {
      while (!stop) sum_to(1000);
    });
  for (int round = 0; round < 10; ++round) CHECK(status_of([] { return sum_to(1000) == 499500 ? 0 : 1; }) == 0);
  stop = true;
  for (std::thread& thread : busy) thread.join();
  CHECK(sum_to(1000) == 499500);
}

TEST_CASE("nested loops end", "[cpu]") {
  std::atomic<std::int64_t> sum = 0;
  parallel_for(8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sum += sum_to(100);
  });
  CHECK(sum == 8 * 4950);
}

}  // namespace test_parallel
