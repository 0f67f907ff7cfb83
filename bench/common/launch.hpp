// What a launch costs the host.
#pragma once
#include <optional>

#include "tessera/jit/device.hpp"

namespace tessera::internal::bench {

/// Microseconds of the host for a launch of a small kernel: medians of bursts that a stream's queue can hold, ours and
/// the driver's in turns.
struct LaunchCost {
  double ours_us;
  std::optional<double> driver_us;  ///< cuLaunchKernel and nothing else; none on the CPU
};

LaunchCost launch_cost(const Device& device);

}  // namespace tessera::internal::bench
