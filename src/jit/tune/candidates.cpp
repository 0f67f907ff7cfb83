#include "jit/tune/candidates.hpp"

#include <algorithm>

#include "tessera/jit/tune.hpp"

namespace tessera::internal {

std::vector<std::size_t> tried_configs(std::size_t count, std::size_t most) {
  const std::size_t first = count <= most ? count : most - most / 3, rest = std::min(count, most) - first;
  std::vector<std::size_t> tried;
  for (std::size_t i = 0; i < first; ++i) tried.push_back(i);
  for (std::size_t i = 0; i < rest; ++i) tried.push_back(first + (2 * i + 1) * (count - first) / (2 * rest));
  return tried;
}

std::vector<Config> combinations(const std::vector<std::vector<int>>& values) {
  std::vector<Config> all{{}};
  for (const std::vector<int>& of_parameter : values) {
    std::vector<Config> longer;
    for (const Config& config : all)
      for (const int value : of_parameter) {
        longer.push_back(config);
        longer.back().push_back(value);
      }
    all = std::move(longer);
  }
  return all;
}

std::vector<Config> configs_of(const std::vector<MatmulTiles>& tiles) {
  std::vector<Config> configs;
  for (const MatmulTiles& t : tiles) configs.push_back({t.m, t.n, t.k});
  return configs;
}

}  // namespace tessera::internal
