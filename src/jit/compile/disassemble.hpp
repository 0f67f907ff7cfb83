// Disassembles machine code with nvdisasm from a CUDA toolkit, if there is one.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace tessera::internal {

/// The path of nvdisasm, searched for in PATH, CUDA_HOME, CUDA_PATH and /usr/local/cuda*. Throws Error if it is
/// missing.
std::filesystem::path nvdisasm_path();

/// The instructions of a cubin as text, from nvdisasm. Throws Error if that is missing or fails.
std::string disassemble(std::span<const std::byte> cubin);

/// The size of the instructions of a cubin: its ELF sections of machine code, ".text.KERNEL". 0 if it is not a cubin.
std::size_t instruction_bytes(std::span<const std::byte> cubin);

}  // namespace tessera::internal
