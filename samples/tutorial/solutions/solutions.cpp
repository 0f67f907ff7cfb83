// The solutions of the exercises of docs/tutorial, each compared with a plain loop.
//     tutorial_solutions         runs all of them
//     tutorial_solutions 1 5     runs those of lessons 1 and 5
#include "tutorial/solutions/solutions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <string>

namespace solutions {
namespace {

struct Entry {
  const char* name;
  bool (*check)(const Device&);
};
std::map<int, Entry>& entries() {
  static std::map<int, Entry> entries;
  return entries;
}

}  // namespace

Solution::Solution(int lesson, const char* name, bool (*check)(const Device&)) { entries()[lesson] = {name, check}; }

std::vector<f32> normal_values(std::int64_t count, unsigned seed, double deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<f32> normal(0, static_cast<f32>(deviation));
  std::vector<f32> values(static_cast<std::size_t>(count));
  for (f32& value : values) value = normal(generator);
  return values;
}

bool agree(const char* name, const std::vector<f32>& results, const std::vector<double>& expected, double allowed) {
  double worst = results.size() == expected.size() ? 0 : inf;
  for (std::size_t i = 0; i < std::min(results.size(), expected.size()); ++i) {
    const double error = std::abs(results[i] - expected[i]) / std::max(1.0, std::abs(expected[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
  }
  std::printf("%s: max error %.1e (allowed %.0e)\n", name, worst, allowed);
  return worst <= allowed;
}

}  // namespace solutions

int main(int argc, char** argv) try {
  using namespace solutions;
  const std::vector<std::string> chosen(argv + 1, argv + argc);
  for (const std::string& lesson : chosen)
    if (std::ranges::none_of(entries(), [&](const auto& entry) { return std::to_string(entry.first) == lesson; }))
      throw Error("there is no lesson " + lesson);
  const Device device = Device::best();
  bool right = true;
  for (const auto& [lesson, entry] : entries()) {
    if (!chosen.empty() && std::ranges::find(chosen, std::to_string(lesson)) == chosen.end()) continue;
    const bool ok = entry.check(device);
    if (!ok) std::printf("lesson %d, %s: wrong\n", lesson, entry.name);
    right &= ok;
  }
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "tutorial_solutions: error: %s\n", error.what());
  return 2;
}
