// Names of kernels in generated text.
#pragma once
#include <string>
#include <string_view>

namespace tessera::internal {

/// The author's name as a unique C++ identifier: "k_" and the name, with other characters replaced by '_'. NVRTC, ptxas
/// and generated text reserve words (`div`, `A7`, `memory`, `_`), but none that begins with "k_".
std::string kernel_identifier(std::string_view name);

}  // namespace tessera::internal
