#include "jit/backend/launch_table.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "jit/backend/overlap.hpp"

namespace tessera::internal {
namespace {

bool writes(const DeviceLaunch& launch, const Parameter& parameter, const Argument& argument) {
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const Parameter& other = launch.graph->parameters[i];
    if ((other.access == Access::out || other.access == Access::in_out) &&
        overlap(other, launch.arguments[i], parameter, argument))
      return true;
  }
  return false;
}

}  // namespace

std::vector<std::byte> launch_table(const PersistentSource& source, std::span<const DeviceLaunch> launches,
                                    std::span<const std::uintptr_t> reports) {
  std::vector<std::byte> table(launches.size() * source.launch_bytes);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const DeviceLaunch& launch = launches[i];
    const std::vector<int>& early = source.codes[source.code_of[i]].prefetched_before_wait;
    const bool may_prefetch = i == 0 || std::ranges::none_of(early, [&](int tensor) {
                                const auto at = static_cast<std::size_t>(tensor);
                                return writes(launches[i - 1], launch.graph->parameters[at], launch.arguments[at]);
                              });
    const LaunchValues values{
        .blocks = std::accumulate(launch.grid.begin(), launch.grid.end(), std::int64_t{1}, std::multiplies()),
        .reports = reports[i],
        .may_prefetch = may_prefetch};
    write_launch(source, i, *launch.graph, launch.arguments, launch.grid, values, &table[i * source.launch_bytes]);
  }
  return table;
}

}  // namespace tessera::internal
