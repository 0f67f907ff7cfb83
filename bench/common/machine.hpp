// What is measured on: its name, and what it can do at most.
#pragma once
#include <optional>
#include <string>

#include "common/row.hpp"

namespace tessera::bench {

/// A short name that is fit for a file: "h200" of "cuda:0 (NVIDIA H200, sm_90)", "cpu" of a CPU.
std::string machine_name(const Device& device);

/// Bytes, or floating-point operations, in a second at most; nothing for a device that is not in the table.
std::optional<double> ceiling(const Device& device, Resource resource);

/// How a row is laid out on the device.
Turns turns_of(const Device& device, const Row& row);

}  // namespace tessera::bench
