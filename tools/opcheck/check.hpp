// Runs cases, and compares their results with the definitions in ops.def.
#pragma once
#include "opcheck/case.hpp"
#include "tessera/jit/device.hpp"

namespace tessera::internal::opcheck {

/// The outcome of a case: empty, or the error.
using Verdict = std::string;

/// Runs each case on the device.
std::vector<Verdict> check_on(const Device& device, std::span<const Case> cases);

/// Throws Error if this program was built without the emulator.
void require_emulator();
/// Generates each case for TESSERA_DUMP_ARCH and runs it in the emulator, which must be available. They are compiled
/// together.
std::vector<Verdict> check_emulated(std::span<const Case> cases);

}  // namespace tessera::internal::opcheck
