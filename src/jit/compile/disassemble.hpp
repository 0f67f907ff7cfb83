// Machine code as text, through nvdisasm of a CUDA toolkit, where there is one.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace tessera::internal {

/// The instructions of a cubin, looked for nvdisasm in PATH, CUDA_HOME, CUDA_PATH and /usr/local/cuda*. Error if that
/// is missing or fails.
std::string disassemble(std::span<const std::byte> cubin);

/// How long the instructions of a cubin are: its ELF sections of machine code, ".text.KERNEL". 0 for what is no cubin.
std::size_t instruction_bytes(std::span<const std::byte> cubin);

}  // namespace tessera::internal
