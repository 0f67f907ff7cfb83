// Options of code generation.
#pragma once

namespace tessera::internal {

struct GenerateOptions {
  bool debug = false;           ///< the kernel checks bounds and NaN (TESSERA_DEBUG)
  bool verify = true;           ///< verify the plan after each pass
  bool warp_specialize = true;  ///< where the GPU has wgmma (TESSERA_TENSOR_CORES)
};

}  // namespace tessera::internal
