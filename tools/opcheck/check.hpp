// Runs cases, and compares what they leave with what ops.def says.
#pragma once
#include "opcheck/case.hpp"
#include "tessera/jit/device.hpp"

namespace tessera::internal::opcheck {

/// What a case came to: empty, or what is wrong.
using Verdict = std::string;

/// Runs each case on the device.
std::vector<Verdict> check_on(const Device& device, std::span<const Case> cases);

/// Throws Error if this program was built without the emulator.
void require_emulator();
/// Generates each case for TESSERA_DUMP_ARCH and runs it in the emulator, which is there. They are compiled together.
std::vector<Verdict> check_emulated(std::span<const Case> cases);

}  // namespace tessera::internal::opcheck
