// The initial numbers of a case's tensors.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "opcheck/case.hpp"

namespace tessera::internal::opcheck {

using Random = std::mt19937_64;

/// Operands that are difficult for ops.
template <class T>
constexpr auto edges() {
  using limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<T>)
    return std::array<T, 6>{0, 1, static_cast<T>(-1), limits::max(), limits::lowest(), limits::max() - 1};
  else
    return std::array<T, 9>{0,
                            -T{0},
                            1,
                            limits::infinity(),
                            -limits::infinity(),
                            limits::quiet_NaN(),
                            limits::max(),
                            limits::min(),
                            limits::denorm_min()};
}

/// T: f32, f64, or an integer.
template <class T>
T number(const Values& values, Random& random) {
  if constexpr (std::is_integral_v<T>) {
    // Numbers beyond a narrow type's range wrap.
    const auto low = static_cast<std::int64_t>(values.low), high = static_cast<std::int64_t>(values.high);
    return static_cast<T>(std::uniform_int_distribution(low, high)(random));
  } else {
    std::uniform_real_distribution<double> any(0, 1);
    const double x = any(random);
    const bool magnitudes = values.low > 0 && values.high / values.low > 1e3;  // log-uniform
    const double y =
        magnitudes ? values.low * std::pow(values.high / values.low, x) : values.low + (values.high - values.low) * x;
    return static_cast<T>(values.whole ? std::round(y) : y);
  }
}

/// `count` of them, or fewer that repeat: large tensors are filled fast.
template <class T>
std::vector<T> numbers(const Values& values, std::int64_t count, Random& random) {
  if (values.distinct) {
    std::vector<T> all(static_cast<std::size_t>(values.high - values.low) + 1);
    std::iota(all.begin(), all.end(), static_cast<T>(values.low));
    std::shuffle(all.begin(), all.end(), random);
    return all;
  }
  constexpr std::int64_t period = 65521;
  constexpr auto extremes = edges<T>();
  std::vector<T> some(static_cast<std::size_t>(std::min(count, period)));
  for (T& x : some)
    x = values.edges && random() % 4 == 0 ? extremes[random() % extremes.size()] : number<T>(values, random);
  return some;
}

}  // namespace tessera::internal::opcheck
