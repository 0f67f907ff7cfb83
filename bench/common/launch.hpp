// What a launch costs the host.
#pragma once
#include <optional>

#include "jit/device.hpp"

namespace tessera::bench {

/// Microseconds of the host for a launch of a small kernel: medians of bursts that a stream's queue can hold, ours and
/// the driver's in turns.
struct LaunchCost {
  double ours_us;
  std::optional<double> driver_us;  ///< cuLaunchKernel and nothing else; none on the CPU
};

LaunchCost launch_cost(const Device& device);

}  // namespace tessera::bench
