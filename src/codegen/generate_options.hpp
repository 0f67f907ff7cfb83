// How kernels are generated.
#pragma once

namespace tessera::internal {

struct GenerateOptions {
  bool debug = false;      ///< checks of bounds and NaN in the kernel (TESSERA_DEBUG)
  bool verify = true;      ///< the plan after each pass
  bool warp_specialize = true;  ///< kernels by roles, where the GPU has wgmma (TESSERA_TENSOR_CORES)
};

}  // namespace tessera::internal
