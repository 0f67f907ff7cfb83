// Trials under the emulator, many kernels in one translation unit.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "fuzz/trial.hpp"

namespace tessera::internal::fuzz {

/// The results of each trial's generated code in the emulator, with its checks. Trials that must be rejected are left
/// out.
std::vector<std::optional<Failure>> check_emulated(std::span<const std::unique_ptr<Trial>> trials);

}  // namespace tessera::internal::fuzz
