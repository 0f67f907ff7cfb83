// The median.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace tessera::internal::bench {

/// Needs at least one number; of an even count, the mean of the two in the middle.
inline double median(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  const std::size_t half = numbers.size() / 2;
  return numbers.size() % 2 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

}  // namespace tessera::internal::bench
