// The gallery: short programs as users write them, each checked against a reference in double precision.
//     gallery              runs all of them
//     gallery adam fft     runs these
#include "gallery/gallery.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>

#include "common/declared.hpp"

namespace gallery {
namespace {

struct Entry {
  double allowed;
  double (*check)(const Device&);
};
std::map<std::string, Entry>& entries() {
  static std::map<std::string, Entry> entries;
  return entries;
}

}  // namespace

Example::Example(std::string name, double allowed, double (*check)(const Device&)) {
  entries()[std::move(name)] = {allowed, check};
}

std::vector<f32> normal_values(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<f32> normal;
  std::vector<f32> values(static_cast<std::size_t>(count));
  for (f32& value : values) value = normal(generator);
  return values;
}

std::vector<i32> random_integers(std::int64_t count, i32 below, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<i32> uniform(0, below - 1);
  std::vector<i32> values(static_cast<std::size_t>(count));
  for (i32& value : values) value = uniform(generator);
  return values;
}

double largest_error(const std::vector<double>& results, const std::vector<double>& expected) {
  if (results.size() != expected.size()) return inf;
  double worst = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double error = std::abs(results[i] - expected[i]) / std::max(1.0, std::abs(expected[i]));
    if (!(error <= worst)) worst = std::isnan(error) ? inf : error;
  }
  return worst;
}

static bool run(const std::string& name, const Entry& entry, const Device& device) {
  const double error = entry.check(device);
  std::printf("%s: largest error %.1e (allowed %.0e)\n", name.c_str(), error, entry.allowed);
  return error <= entry.allowed;
}

}  // namespace gallery

int main(int argc, char** argv) try {
  using namespace gallery;
  std::vector<std::string> names(argv + 1, argv + argc);
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries()) all.push_back(name);
  if (names.empty()) names = all;
  const Device device = Device::best();
  bool right = true;
  for (const std::string& name : names) {
    const auto found = entries().find(name);
    if (found == entries().end())
      throw Error("the gallery has no program '" + name + "'" + tessera::internal::did_you_mean(name, all));
    right &= run(name, found->second, device);
  }
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "gallery: error: %s\n", error.what());
  return 2;
}
