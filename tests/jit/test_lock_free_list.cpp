// A list whose values are made once per key, those of different keys concurrently.
#include "jit/backend/lock_free_list.hpp"

#include <barrier>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/catch.hpp"

namespace test_lock_free_list {

using namespace tessera::internal;

TEST_CASE("A growing list makes values of different keys concurrently", "[jit]") {
  LockFreeList<int, int> list;
  std::promise<void> begun[2];
  const auto make = [&](int key) {
    return std::async(std::launch::async, [&list, &begun, key] {
      return list.find_or_make(key, [&] {
        begun[key].set_value();
        const auto other = begun[1 - key].get_future().wait_for(std::chrono::seconds(20));
        return other == std::future_status::ready ? key : -1;
      });
    });
  };
  auto first = make(0), second = make(1);
  CHECK(first.get() == 0);
  CHECK(second.get() == 1);
}

TEST_CASE("A growing list makes each value once, at a stable address", "[jit]") {
  constexpr int threads = 8, keys = 50;
  LockFreeList<int, int> list;
  std::atomic<int> made = 0, wrong = 0;
  std::barrier start(threads);
  std::vector<const int*> places(threads * keys);
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        for (int key = 0; key < keys; ++key) {
          start.arrive_and_wait();
          const int& value = list.find_or_make(key, [&] {
            ++made;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            return key * key;
          });
          wrong += value != key * key;
          places[static_cast<std::size_t>(key * threads + t)] = &value;
        }
      });
  }
  CHECK(made == keys);
  CHECK(wrong == 0);
  for (std::size_t i = 0; i < places.size(); ++i) CHECK(places[i] == places[i / threads * threads]);
}

TEST_CASE("A value that cannot be made is tried again", "[jit]") {
  LockFreeList<int, int> list;
  CHECK_THROWS_AS(list.find_or_make(1, []() -> int { throw std::runtime_error("not now"); }), std::runtime_error);
  CHECK(list.find_or_make(1, [] { return 5; }) == 5);
  CHECK(list.find_or_make(1, [] { return 6; }) == 5);
}

}  // namespace test_lock_free_list
