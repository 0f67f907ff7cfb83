// Tensors to measure with: operands of normal random numbers, and results that are checked.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tessera/tessera.hpp"

namespace tessera::internal::bench {

/// An endless sequence with random access; none of a million numbers is six deviations from the mean. It repeats after
/// these, so that gigabytes are generated fast; the period is prime, so that no two rows of a matrix are equal.
class Normal {
 public:
  explicit Normal(std::size_t seed, float deviation = 1, float mean = 0)
      : start_(seed * 7919 % period), deviation_(deviation), mean_(mean) {}
  float operator[](std::size_t index) const { return mean_ + deviation_ * numbers()[(start_ + index) % period]; }

 private:
  static constexpr std::size_t period = 1'048'573;
  static const std::vector<float>& numbers() {
    static const std::vector<float> numbers = [] {
      std::mt19937 generator(1);
      std::normal_distribution<float> normal;
      std::vector<float> made(period);
      for (float& number : made) number = normal(generator);
      return made;
    }();
    return numbers;
  }

  std::size_t start_;
  float deviation_, mean_;
};

template <class T, int R>
Tensor<T, R> tensor_of(const Device& device, const std::array<std::int64_t, R>& extents, const Normal& normal) {
  const Tensor<T, R> tensor(device, extents);
  std::vector<T> values(static_cast<std::size_t>(tensor.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(normal[i]);
  tensor.copy_from(values);
  return tensor;
}

/// A value that no result has, a NaN or the lowest integer: it shows elements that a kernel forgets to write.
template <class T>
T poison() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::min();
  else
    return static_cast<T>(NAN);
}
template <class T, int R>
Tensor<T, R> poisoned(const Device& device, const std::array<std::int64_t, R>& extents) {
  const Tensor<T, R> tensor(device, extents);
  tensor.copy_from(std::vector<T>(static_cast<std::size_t>(tensor.size()), poison<T>()));
  return tensor;
}

/// Workload::error() of a tensor, given the reference of its element i in row-major order.
template <class T, int R, class F>
double error_of(const Tensor<T, R>& tensor, const F& reference) {
  const std::vector<T> values = tensor.to_vector();
  const auto is_left = [](T value) {
    if constexpr (std::is_integral_v<T>) return value == poison<T>();
    return !std::isfinite(static_cast<float>(value));
  };
  if (std::ranges::any_of(values, is_left)) return std::numeric_limits<double>::infinity();
  std::mt19937_64 generator(1);
  constexpr int samples = 64;
  double worst = 0, squares = 0;
  for (int i = 0; i < samples; ++i) {
    const std::size_t index = generator() % values.size();
    const double expected = reference(static_cast<std::int64_t>(index));
    worst = std::max(worst, std::abs(static_cast<float>(values[index]) - expected));
    squares += expected * expected;
  }
  return worst / std::sqrt(squares / samples);
}

}  // namespace tessera::internal::bench
