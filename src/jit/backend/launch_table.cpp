#include "jit/backend/launch_table.hpp"

#include "jit/backend/in_flight.hpp"

namespace tessera::internal {

std::vector<std::byte> launch_table(const PersistentSource& source, std::span<const DeviceLaunch> launches,
                                    std::span<const std::uintptr_t> reports) {
  std::vector<std::byte> table(launches.size() * source.launch_bytes);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const DeviceLaunch& launch = launches[i];
    InFlight before;
    before.begin();
    if (i > 0) before.add(*launches[i - 1].graph, launches[i - 1].arguments);
    const bool may_prefetch =
        before.is_known() &&
        !before.write(*launch.graph, launch.arguments, source.codes[source.code_of[i]].prefetched_before_wait);
    const LaunchValues values{.blocks = tiles_in(launch.grid), .reports = reports[i], .may_prefetch = may_prefetch};
    write_launch(source, i, *launch.graph, launch.arguments, launch.grid, values, &table[i * source.launch_bytes]);
  }
  return table;
}

}  // namespace tessera::internal
