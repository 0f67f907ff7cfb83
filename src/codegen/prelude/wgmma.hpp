// The device functions that wrap wgmma.mma_async, one for each element type, width and place of the left operand.
#pragma once
#include <string>

namespace tessera::internal {

/// Items of the prelude, as a file of prelude/device would hold them (prelude.hpp): wgmma_TYPE_nN takes both operands
/// from shared memory, wgmma_left_TYPE_nN the left one from registers.
std::string wgmma_items();

}  // namespace tessera::internal
