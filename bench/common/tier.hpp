// A GPU whose kernels are made of what every GPU has.
#pragma once
#include "tessera/jit/device.hpp"

namespace tessera::internal::bench {

/// The same GPU, for which no kernel is made of wgmma, whatever it has; a CPU is itself.
Device without_wgmma(const Device& device);

}  // namespace tessera::internal::bench
