// What is measured on: its name, and what it can do at most.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/row.hpp"

namespace tessera::internal::bench {

/// A short name that is fit for a file: "h200" of "cuda:0 (NVIDIA H200, sm_90)", "cpu" of a CPU.
std::string machine_name(const Device& device);

/// Bytes, or floating-point operations, in a second at most; nothing for a device that is not in the table.
std::optional<double> ceiling(const Device& device, Resource resource);

/// What figures also depend on, as far as it can be found out: "host" (its CPU and how many cores it has), "nvrtc", and
/// of a GPU "driver", the "cuda" that this has, and "clocks_mhz", the highest of its multiprocessors and memory.
nlohmann::json circumstances(const Device& device);

/// The first line that a command prints; empty if it fails.
std::string first_line_of(const std::vector<std::string>& command);

/// How a row is laid out on the device.
Turns turns_of(const Device& device, const Row& row);

}  // namespace tessera::internal::bench
