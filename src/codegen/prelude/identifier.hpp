// Names of kernels in generated text.
#pragma once
#include <string>
#include <string_view>

namespace tessera::internal {

/// The author's name as a C++ identifier that nothing else has: behind "k_", other characters as '_'. Of those that
/// NVRTC, ptxas and generated text have words for (`div`, `A7`, `memory`, `_`), none begins so.
std::string kernel_identifier(std::string_view name);

}  // namespace tessera::internal
