// The time of a case on a device.
#pragma once
#include <optional>

#include "opcheck/case.hpp"
#include "tessera/jit/device.hpp"

namespace tessera::internal::opcheck {

struct Cost {
  std::optional<double> ms;  ///< per launch: the device's time on a GPU, the host's on the CPU; a median
  std::string failure;       ///< why there is none
};

/// Measures like bench: launches captured once, over rotating sets of buffers. On a GPU they do not find their data in
/// its cache; on a CPU they may.
Cost cost_of(const Case& each, const Device& device);

/// The rate of the resource that bounds the case, per second: 1e9 multiplications and additions, or bytes.
struct Rate {
  double value;
  std::string_view unit;  ///< "GFLOP/s" or "GB/s"
};
Rate rate_of(const Case& each, double ms);

}  // namespace tessera::internal::opcheck
