// Tensors on the test's device with initial values.
#pragma once
#include <array>
#include <cstddef>
#include <vector>

#include "support/devices.hpp"
#include "tessera/api/tensor.hpp"

/// A small number as an element of memory.
template <class T>
T stored(int x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(x);
  else
    return T(static_cast<float>(x));
}

/// first, first + 1, ...
template <class T>
std::vector<T> numbered(std::size_t size, int first = 0) {
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<T>(first + static_cast<int>(i));
  return values;
}

template <tessera::internal::Stored T, int R>
tessera::internal::Tensor<T, R> tensor(const std::array<std::int64_t, R>& extents, const std::vector<T>& values) {
  tessera::internal::Tensor<T, R> t(test_device(), extents);
  t.copy_from(values);
  return t;
}
