// Sums in memory that several threads add to.
#pragma once
#include <atomic>

#include "cpu/strip.hpp"
#include "graph/math.hpp"

namespace tessera::cpu {

template <class T>
void add_atomically(char* memory, std::int64_t stride, const char* in, std::int64_t step, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::atomic_ref<T> target(reinterpret_cast<T*>(memory)[i * stride]);
    const T value = reinterpret_cast<const T*>(in)[i * step];
    T old = target.load(std::memory_order_relaxed);
    while (!target.compare_exchange_weak(old, math::add(old, value), std::memory_order_relaxed)) {}
  }
}

}  // namespace tessera::cpu
