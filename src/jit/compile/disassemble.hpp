// Disassembles machine code with nvdisasm from a CUDA toolkit, if there is one.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tessera::internal {

/// The path of nvdisasm, searched for in PATH, CUDA_HOME, CUDA_PATH and /usr/local/cuda*. Throws Error if it is
/// missing.
std::filesystem::path nvdisasm_path();

/// The instructions of a cubin as text, from nvdisasm with these options. Throws Error if that is missing or fails.
std::string disassemble(std::span<const std::byte> cubin, const std::vector<std::string>& options = {"--print-code"});

/// Since sm_70.
inline constexpr int bytes_of_instruction = 16;
/// The instructions of a cubin: its ELF sections of machine code, ".text.KERNEL". Empty if it is not a cubin.
std::vector<std::byte> instructions_of(std::span<const std::byte> cubin);

}  // namespace tessera::internal
