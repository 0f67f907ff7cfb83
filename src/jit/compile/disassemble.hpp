// Machine code as text, through nvdisasm of a CUDA toolkit, where there is one.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace tessera::internal {

/// nvdisasm, looked for in PATH, CUDA_HOME, CUDA_PATH and /usr/local/cuda*. Error if it is not there.
std::filesystem::path nvdisasm_path();

/// The instructions of a cubin, by nvdisasm. Error if that is missing or fails.
std::string disassemble(std::span<const std::byte> cubin);

/// How long the instructions of a cubin are: its ELF sections of machine code, ".text.KERNEL". 0 for what is no cubin.
std::size_t instruction_bytes(std::span<const std::byte> cubin);

}  // namespace tessera::internal
