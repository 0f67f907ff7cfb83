// Shared by the solutions of the tutorial's exercises: random data, and the comparison with a plain loop.
#pragma once
#include <vector>

#include <tessera/tessera.hpp>

namespace solutions {

using namespace tessera;

/// The solution of a lesson's exercise. `check` runs it on a device and returns whether its results are right.
struct Solution {
  Solution(int lesson, const char* name, bool (*check)(const Device&));
};

/// Normally distributed values with mean 0; equal seeds give equal values.
std::vector<f32> normal_values(std::int64_t count, unsigned seed, double deviation = 1);

/// Prints the largest error, which is relative where the expected value is above 1 in magnitude, and returns whether it
/// is at most `allowed`. A NaN and a difference in size are infinite errors.
bool agree(const char* name, const std::vector<f32>& results, const std::vector<double>& expected, double allowed);

}  // namespace solutions
