// Atomic updates of elements in memory, by several threads.
#pragma once
#include <atomic>

#include "graph/host_ops.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::internal::cpu {

inline std::memory_order order_of(MemoryOrder order) {
  constexpr std::memory_order orders[] = {std::memory_order_relaxed, std::memory_order_acquire,
                                          std::memory_order_release, std::memory_order_acq_rel};
  return orders[static_cast<int>(order)];
}

/// Replaces the element by the result of the op; retries if another thread changed it in between. Returns the old
/// value.
template <Op op, class T>
T change(T& element, T value, T expected, std::memory_order order) {
  std::atomic_ref<T> target(element);
  T old = target.load(std::memory_order_relaxed);
  while (!target.compare_exchange_weak(old, math::Host<op>::apply(old, value, expected), order,
                                       std::memory_order_relaxed)) {}
  return old;
}

template <class T>
T change(Op op, T& element, T value, T expected, std::memory_order order) {
  switch (at_position(op)) {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define REDUCTION(...)
#define STRUCTURAL(...)
#define ATOMIC(name, ...)                                                                             \
  case Op::name:                                                                                      \
    if constexpr (math::takes<Op::name, T>) return change<Op::name>(element, value, expected, order); \
    break;
#include "tessera/graph/ops.def"
    default:
      break;
  }
  return T();
}

}  // namespace tessera::internal::cpu
