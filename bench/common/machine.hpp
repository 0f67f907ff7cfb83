// The measured machine: its name and its peak rates.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/row.hpp"

namespace tessera::internal::bench {

/// A short name that is usable in a file name: "h200" for "cuda:0 (NVIDIA H200, sm_90)", "cpu" for a CPU.
std::string machine_name(const Device& device);

/// Peak bytes or floating-point operations per second; nothing for a device that is not in the table.
std::optional<double> ceiling(const Device& device, Resource resource);

/// "2026-11-30".
std::string today();

/// Further influences on figures, as far as they are known: "host" (the CPU and its number of cores), "nvrtc", and
/// for a GPU "driver", its "cuda" version, and "clocks_mhz", the highest of its multiprocessors and memory.
nlohmann::json circumstances(const Device& device);

/// The first line that a command prints; empty if it fails.
std::string first_line_of(const std::vector<std::string>& command);

/// How a row is laid out on the device.
Turns turns_of(const Device& device, const Row& row);

}  // namespace tessera::internal::bench
