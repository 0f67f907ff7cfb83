// A GPU whose kernels use only what every GPU has.
#pragma once
#include "tessera/jit/device.hpp"

namespace tessera::internal::bench {

/// The same GPU, but its kernels never use wgmma; a CPU is returned unchanged.
Device without_wgmma(const Device& device);

}  // namespace tessera::internal::bench
