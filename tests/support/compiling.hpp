// Helpers of tests that compile: the compiler, if there is one, and all cores.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "jit/compile/nvrtc.hpp"
#include "support/catch.hpp"
#include "support/support.hpp"

/// NVRTC, or null after a warning if there is none here.
inline const tessera::internal::Nvrtc* nvrtc_here() {
  static const std::string reason = error_of([] { tessera::internal::Nvrtc::instance(); });
  SUCCEED();
  if (reason == "(no error)") return &tessera::internal::Nvrtc::instance();
  WARN("skipped: " << reason);
  return nullptr;
}

/// Calls `work(i)`, which does not throw, for each i below `count`, on all cores.
inline void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    threads.emplace_back([&] {
      for (std::size_t i; (i = next++) < count;) work(i);
    });
}
