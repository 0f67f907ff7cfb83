// Trials under the emulator, many kernels in one translation unit.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "fuzz/trial.hpp"

namespace tessera::internal::fuzz {

/// What each trial's generated code does in the emulator, with its checks. Trials that must be refused are left out.
std::vector<std::optional<Failure>> check_emulated(std::span<const std::unique_ptr<Trial>> trials);

}  // namespace tessera::internal::fuzz
