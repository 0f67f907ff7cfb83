// How chunks of 16 bytes are permuted in shared memory, by its address.
#pragma once
#include <cstdint>

namespace tessera::internal::emulator {

/// PTX ISA, "Swizzling Modes": of rows of `chunks` chunks (8: the swizzle of 128 bytes; 1: none), address bits 4 on are
/// combined with bits 7 on.
inline std::uint32_t swizzled(std::uint32_t address, std::uint32_t chunks) {
  return address ^ ((address >> 7) & (chunks - 1)) << 4;
}

}  // namespace tessera::internal::emulator
