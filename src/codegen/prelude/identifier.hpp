// Names of kernels in generated text.
#pragma once
#include <string>
#include <string_view>

namespace tessera {

/// The author's name as a C++ identifier that NVRTC has nothing else by: other characters become '_', and a word of
/// C++, of the C library, of CUDA, of PTX or of generated text gets "_kernel" behind it,
/// as does what begins as CUDA's own names or those that C++ leaves to compilers do.
std::string kernel_identifier(std::string_view name);

}  // namespace tessera
