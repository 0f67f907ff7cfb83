// Swizzle of 16-byte chunks in shared memory, by address.
#pragma once
#include <cstdint>

namespace tessera::internal::emulator {

/// PTX ISA, "Swizzling Modes": with rows of `chunks` chunks (8: 128-byte swizzle; 1: none), address bits from 4 on are
/// xored with bits from 7 on.
inline std::uint32_t swizzled(std::uint32_t address, std::uint32_t chunks) {
  return address ^ ((address >> 7) & (chunks - 1)) << 4;
}

}  // namespace tessera::internal::emulator
