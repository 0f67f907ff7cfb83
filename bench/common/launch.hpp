// The host cost of a launch.
#pragma once
#include <optional>

#include "tessera/jit/device.hpp"

namespace tessera::internal::bench {

/// Host microseconds for the launch of a small kernel: medians over bursts that fit a stream's queue, ours and the
/// driver's in alternation.
struct LaunchCost {
  double ours_us;
  std::optional<double> driver_us;  ///< cuLaunchKernel alone; none on the CPU
};

LaunchCost launch_cost(const Device& device);

}  // namespace tessera::internal::bench
