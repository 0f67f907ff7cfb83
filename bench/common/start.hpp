// Startup costs: plans, compilations, and the first text of a process.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "common/measure.hpp"

namespace tessera::internal::bench {

/// NVRTC's time for each kernel of GPT-2 124M on one thread, nothing cached, the median of three; an array of {name,
/// ms, registers, shared_bytes}. Needs no GPU.
nlohmann::json compile_times(Arch gpu);

/// The time to make a plan, without the verifier: {model: for the kernels of GPT-2 124M and the lessons, medians of
/// five; growing: for the kernels that grow, once each}, each an array of {name, ms}. Needs no GPU. small: with a
/// twentieth of the growing kernels' size.
nlohmann::json plan_times(Arch gpu, bool small);

/// In this process, which should have done nothing yet: {device_ms, first_ms, second_ms}. First the device is opened;
/// then a GPT-2 124M (small: a tiny one) with random weights is made and continues 16 tokens by two, which needs all
/// its kernels; then it does so again.
nlohmann::json first_text(const std::string& device, bool small);

/// first_text() in fresh processes that run `command` (which prints it as a line), with their own cache folder: {cold:
/// the first, with an empty cache, warm: the medians of five more}.
nlohmann::json process_starts(const std::vector<std::string>& command);

}  // namespace tessera::internal::bench
