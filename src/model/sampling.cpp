#include "tessera/model/sampling.hpp"

#include <fmt/format.h>

#include <cmath>

#include "tessera/graph/error.hpp"

namespace tessera::internal {

void check(const Sampling& sampling) {
  const auto require = [](bool holds, auto value, std::string_view name, std::string_view allowed) {
    if (!holds) throw Error(fmt::format("{} {} is not allowed; it must be {}", name, value, allowed));
  };
  require(std::isfinite(sampling.temperature) && sampling.temperature >= 0, sampling.temperature, "temperature",
          "0 (greedy) or more");
  require(sampling.top_k >= 0, sampling.top_k, "top-k", "0 (off) or more");
  require(sampling.top_p > 0 && sampling.top_p <= 1, sampling.top_p, "top-p", "above 0 and at most 1 (off)");
  require(sampling.min_p >= 0 && sampling.min_p <= 1, sampling.min_p, "min-p", "0 (off) to 1");
  require(sampling.repetition_penalty >= 0.01f && sampling.repetition_penalty <= 100, sampling.repetition_penalty,
          "repetition penalty", "0.01 to 100; 1 is off");
}

}  // namespace tessera::internal
