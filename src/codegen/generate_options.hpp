// Options of code generation.
#pragma once
#include "codegen/plan/words.hpp"

namespace tessera::internal {

struct GenerateOptions {
  bool debug = false;           ///< the kernel checks bounds and NaN (TESSERA_DEBUG)
  bool verify = true;           ///< verify the plan after each pass
  bool warp_specialize = true;  ///< where the GPU has wgmma (TESSERA_TENSOR_CORES)
  bool in_sequence = false;     ///< a device function of a persistent kernel (persistent_source.hpp)
  bool record = false;          ///< keep a LoweringRecord, for the inspector
  ReadSource read_source = {};  ///< for a text in the author's words; none: there is no such text
};

}  // namespace tessera::internal
